"""The refusals that a checkpointer is told. Each message says what to do."""

from __future__ import annotations

from agents.work_errors import WorkRefused


class ThreadMoved(WorkRefused):
    """Somebody else has written the thread. Invoke the graph again: it goes on from the thread as it is now."""

    code = "thread_moved"


class ThreadEnded(WorkRefused):
    """The thread's run has ended. Rewind it on its page to go on, or use another thread_id."""

    code = "thread_ended"


class ThreadHeld(WorkRefused):
    """Something holds a checkpoint of the thread, so that it cannot be removed."""

    code = "thread_held"


class ThreadTaken(WorkRefused):
    """The checkpoint's id, or the thread to copy to, is in use."""

    code = "thread_taken"


class ThreadRefused(WorkRefused):
    """The name of a thread or a checkpoint cannot be used."""

    code = "thread_refused"
    status = 422
