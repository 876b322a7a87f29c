"""The answers to a recovery gate: what a person may say after a step failed, or when nobody knows what an effect did.

The runner offers and carries them out, the impact says before what each would do, and the timeline what it did.
"""

from __future__ import annotations

from enum import StrEnum


class RecoveryAnswer(StrEnum):
    """The id of one answer, as gates, events and the API carry it."""

    # About an effect whose outcome is unknown.
    HAPPENED = "happened"
    NOT_HAPPENED = "not_happened"
    AGAIN = "again"
    # About a step that failed for good.
    RETRY = "retry"
    REVISE = "revise"
    SKIP = "skip"
    STOP = "stop"
    ACCEPT = "accept"  # what a validator refused
    # About an effect that the run has left behind: what became of it, and what its undo came to.
    WAS_DONE = "was_done"
    WAS_NOT_DONE = "was_not_done"
    LEFT_OPEN = "left_open"
    UNDO_AGAIN = "undo_again"
    UNDONE = "undone"
    KEEP = "keep"
    GAVE = "gave"  # what an effect gave whose recorded result this version cannot read
    # In a fork, about an effect of the run that it came from.
    TAKE = "take"
    DO_AGAIN = "do_again"


# The status that an effect which was left behind has by the answer. An undo that was begun is over by it.
STATUS_BY_ANSWER: dict[str, str] = {
    RecoveryAnswer.WAS_DONE: "done",
    RecoveryAnswer.WAS_NOT_DONE: "failed",
    RecoveryAnswer.LEFT_OPEN: "kept",
    RecoveryAnswer.UNDO_AGAIN: "done",
    RecoveryAnswer.UNDONE: "undone",
    RecoveryAnswer.KEEP: "kept",
}
# Answers after which the gate's effects may be performed.
GRANTING = frozenset({RecoveryAnswer.RETRY, RecoveryAnswer.NOT_HAPPENED, RecoveryAnswer.AGAIN})
