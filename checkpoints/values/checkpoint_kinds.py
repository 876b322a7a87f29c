"""The kinds of checkpoints, and the groups of them that rules ask for.

The groups are tuples: a member hashes by its name, so no set of them would contain the text of a row.
"""

from __future__ import annotations

from django.db.models import TextChoices


class Kind(TextChoices):
    """The kind of a checkpoint: what made it."""

    INPUT = "input"
    STEP = "step"
    GATE = "gate"
    REWIND = "rewind"
    FORK = "fork"
    EDIT = "edit"
    RECOVERY = "recovery"
    REOPEN = "reopen"
    REUSED = "reused"  # the recorded output of an execution, or a gate's outcome, used again
    REPAIR = "repair"  # back to a step, with a validator's feedback
    SKIPPED = "skipped"  # an effect that did not run: people refused it, or answered instead
    UPCAST = "upcast"  # the state, upgraded to a newer version of the agent
    ASKED = "asked"  # a gate was opened, and the run goes on
    ANSWERED = "answered"  # the outcome of such a gate


OUTPUT_LANDED = (Kind.STEP, Kind.REUSED)  # a step's output landed
EXECUTIONS = (Kind.STEP, Kind.GATE, Kind.REUSED, Kind.ASKED)  # an execution of its step, or of its gate, on its input
OUTCOMES = (Kind.GATE, Kind.RECOVERY, Kind.ANSWERED)  # holds the outcome of a gate
GATE_PASSED = (Kind.GATE, Kind.REUSED, Kind.ASKED)  # the run went on past a gate that the plan names
MOVED_BY_PERSON = (Kind.REWIND, Kind.EDIT)
STARTED_ANEW = (*MOVED_BY_PERSON, Kind.FORK, Kind.UPCAST)  # goes on from another state or plan than before
ASIDE = (Kind.RECOVERY, Kind.REOPEN, Kind.UPCAST, Kind.ANSWERED)  # changes nothing about where the run was sent
MAY_LEAVE_BEHIND = (*MOVED_BY_PERSON, Kind.REPAIR, Kind.UPCAST)  # may leave what was under way, though nothing landed
