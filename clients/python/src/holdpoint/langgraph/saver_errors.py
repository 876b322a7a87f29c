"""The exceptions of the LangGraph saver. Each message says what to do."""

from __future__ import annotations

from ..errors import HoldpointError


class SaverError(HoldpointError):
    """The base of the exceptions of the saver alone."""


class Unsaveable(SaverError):
    """A value of the graph's state could not be restored as it is, so it is not saved."""


class Unreadable(SaverError):
    """A saved value is damaged, from a newer version, or of a class that the program did not allow."""


class Tampered(SaverError):
    """Stored data does not match its digest, so it is not handed out."""


class ThreadMoved(SaverError):
    """Somebody else has written the thread since this program read it. Invoke the graph again."""


class ThreadEnded(SaverError):
    """A person has ended the thread's run. Rewind it on its page to go on, or use another thread_id."""


class ThreadHeld(SaverError):
    """Something holds a checkpoint, so that it cannot be removed; the message names it."""


class ThreadTaken(SaverError):
    """The checkpoint's id, or the thread to copy to, is in use."""


# By the `code` of the server's refusal.
REFUSALS: dict[str, type[SaverError]] = {
    "thread_moved": ThreadMoved,
    "thread_ended": ThreadEnded,
    "thread_held": ThreadHeld,
    "thread_taken": ThreadTaken,
    "thread_refused": SaverError,
    "not_verified": Tampered,
}
