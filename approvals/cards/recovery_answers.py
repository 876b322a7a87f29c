"""The answers to a recovery gate, which opens when a step failed, or when an effect's outcome is unknown.

The runner offers them and carries them out, the impact previews each, and the timeline says what was answered.
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
    ACCEPT = "accept"  # take the output that a validator refused
    WITHDRAW = "withdraw"  # have what another version started undone, and try the step again
    # About an effect that the run left behind: its outcome, or that of its undo.
    WAS_DONE = "was_done"
    WAS_NOT_DONE = "was_not_done"
    LEFT_OPEN = "left_open"
    UNDO_AGAIN = "undo_again"
    UNDONE = "undone"
    KEEP = "keep"
    GAVE = "gave"  # the result of an effect, where this version cannot read the recorded one
    # In a fork, about an effect of the run that it came from.
    TAKE = "take"
    DO_AGAIN = "do_again"


# Answer -> the status that it gives an effect that was left behind. It also ends an undo that was begun.
STATUS_BY_ANSWER: dict[str, str] = {
    RecoveryAnswer.WAS_DONE: "done",
    RecoveryAnswer.WAS_NOT_DONE: "failed",
    RecoveryAnswer.LEFT_OPEN: "kept",
    RecoveryAnswer.UNDO_AGAIN: "done",
    RecoveryAnswer.UNDONE: "undone",
    RecoveryAnswer.KEEP: "kept",
}
# Answers after which the step is tried again.
TRIED_AGAIN = frozenset(
    {
        RecoveryAnswer.RETRY,
        RecoveryAnswer.NOT_HAPPENED,
        RecoveryAnswer.AGAIN,
        RecoveryAnswer.DO_AGAIN,
        RecoveryAnswer.WITHDRAW,
    }
)
# Answers after which the gate's effects may be performed.
GRANTING = frozenset({RecoveryAnswer.RETRY, RecoveryAnswer.NOT_HAPPENED, RecoveryAnswer.AGAIN})
