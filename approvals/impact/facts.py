"""What an impact is worked out from: a plan, what was recorded, and where the run would go on.

Whoever has the tables fills these in. Lists are oldest first. What is expensive to read is a function, called only
where it is needed; digests are raw bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from approvals.cards.action import Action
from checkpoints.runs.plans import PlanSpec
from checkpoints.store.header import CheckpointHeader
from checkpoints.values.ops import Write

OPEN, REJECTED = "open", "rejected"

ABSENT = b""  # stands for the digest of a field that is not there

Writes = Mapping[str, Write]
Fields = Mapping[str, bytes]  # field -> digest


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFact:
    """An effect's row, in any run of the lineage. Only those of agents' effects, not the undos'.

    `returned()` is what adopting it would save: (writes, where it went on; None for the plan's next step).
    `again`: a person sent the run back to it, so that it is undone and not adopted. `going`: an undo of it was begun,
    and nobody knows how that ended. `undo` is empty where nothing takes it back. `taken`: its result was taken over
    from another run, whose effect it is. `shared`: another run stands on it. `left_open`: it is kept, although nobody
    knows whether it happened. `landings`: the executions that carry its result; where there are none, it is on a path
    that has an execution of its step, input and occurrence.
    """

    id: int
    run: int
    step: str
    input_digest: bytes
    occurrence: int
    generation: int = 0
    status: str = "done"  # intended, done, failed, unknown, abandoned, undone, kept
    irreversible: bool = False
    undo: str = ""
    again: bool = False
    going: bool = False
    taken: bool = False
    shared: bool = False
    left_open: bool = False
    landings: frozenset[UUID] = frozenset()
    at: datetime | None = None
    landed: int = 0
    arguments: Callable[[], bytes | None] = lambda: None
    returned: Callable[[], tuple[Writes, str | None]] = lambda: ({}, None)
    reads: Callable[[], Fields | None] = lambda: None  # the digests of the fields that its step read; None: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantFact:
    """One right that an outcome gave.

    `fields()` are the state fields that the approval covers for this effect, by their digests when it was given: those
    that its actions point into and those that it binds; an empty digest for one that was not there. None where that
    is not known.
    """

    effect: str
    action: str = ""
    used_by: int = 0  # the id of the effect's row that consumed it; 0: nothing has
    fields: Callable[[], Fields | None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFact:
    """A gate that asked, in any run of the lineage. One that had nothing to ask is an Execution alone.

    `kind` is its outcome's, or "open"; `seq` is the number of the checkpoint at which it stood, and `execution` the
    id of the one that saved its outcome. `current`: the agent, the version and the plan that it shows are those that
    it would show now. `fields()` are the digests that the fields into which its actions point had when it asked, as a
    GrantFact's, and `reads()` those of what its step read; None where that is not known.
    """

    id: int
    run: int
    seq: int
    step: str
    input_digest: bytes | None
    code_hash: bytes = b""
    kind: str = OPEN
    grants: Sequence[GrantFact] = ()
    execution: UUID | None = None
    recovery: bool = False  # it asked how to go on after a fault
    current: bool = True
    fields: Callable[[], Fields | None] = lambda: None
    reads: Callable[[], Fields | None] = lambda: None
    choice: str = ""  # what was answered, where it asked a question
    permits: bool = True  # whether an answer to its question may let its step run
    about: int = 0  # the effect that was left behind and that it asks about; 0: none
    refused: Sequence[Action] = ()  # that do not run although it lets the run go on: they are settled
    actions: frozenset[str] = frozenset()  # the ids of its actions


class ByHand(NamedTuple):
    """Somebody changed these fields of the state by hand, after the first `at` executions of a path."""

    at: int
    fields: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTarget:
    """Where the run would go on, and with what.

    `path` are the executions from the root to there, a fork's origin included; `gates` are the ids of the gates whose
    outcome is on that path. `novel` are fields whose new value no record can have; `unknown` are fields whose new
    value is not known yet, with the steps on whom it depends. Both go before what `state` and `fields` say.
    """

    run: int  # the run that goes on; 0: a fork that is not made yet
    next_step: str  # "": the run ends here
    path: Sequence[CheckpointHeader] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    fields: Fields = field(default_factory=dict)
    gates: Sequence[int] = ()
    by_hand: Sequence[ByHand] = ()  # on that path, and what is ordered now
    sent: int = 0  # how much of the path lies before the point to which a person last moved the run, or changed it
    fork: bool = False  # the run was forked from another, or would be
    branched: bool | None = None  # it has checkpoints beside the path, else nothing is looked up; None: unknown
    own: frozenset[str] = frozenset()  # effects that a person said this fork does itself
    forced: bool = False  # `next_step` runs whatever is recorded
    again: bool = False  # a person sends it back to `next_step`: an effect that was done there is done again
    takes_up: bool = False  # a person moves the run: what its path holds stands, even if it was left or ordered again
    leave: bool = False  # where the run ends here, what it left behind stays as it is
    novel: frozenset[str] = frozenset()
    unknown: Mapping[str, frozenset[str]] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)  # the run's configuration, as JSON values
    settled: Mapping[int, str] = field(default_factory=dict)  # effect id -> the status that the decision gives it
    awaited: frozenset[int] = frozenset()  # effects on which the run waits to hear: not left behind
    deciding: int = 0  # the gate that is decided
    decision: str = ""  # the kind of its outcome
    grants: Sequence[GrantFact] = ()  # what that decision gives
    refused: Sequence[Action] = ()  # and what it refuses, or answers in its place


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedHistory:
    """A lineage as it is recorded. `plan` is the one that the run would go on with.

    `head` is where the run stands, without its state. `head.sent` counts to the newest rewind, edit, fork or upcast.
    """

    plan: PlanSpec
    head: MoveTarget
    executions: Sequence[CheckpointHeader] = ()  # of all runs and branches, by time: where two match, the last counts
    effects: Sequence[EffectFact] = ()
    gates: Sequence[GateFact] = ()
    places: Sequence[CheckpointHeader] = ()  # all that was saved on the path to the head, of every kind
    ending: bool = False  # the run ends as soon as what it left behind is settled
    reopened: str = ""  # the effect for whose sake the gate at the head was opened again
    # Whether a gate has something to ask of a state, which its method says; None where nobody can call that.
    draws: Callable[[str, Mapping[str, Any]], bool | None] = lambda step, state: None
    # What a reuse of an execution would save. Raises a CheckpointError where it cannot be, so that the step runs.
    writes: Callable[[UUID], Writes] = lambda execution: {}
