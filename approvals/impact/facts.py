"""The facts from which an impact is computed: a plan, the records, and where the run would go on.

The caller fills them in from its tables. Lists are oldest first. What is expensive to read is a function, called only
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
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values.digests import ListDigest
from checkpoints.values.ops import Write

from .result import Impact, ImpactChild

OPEN, REJECTED = "open", "rejected"

ABSENT = b""  # stands for the digest of a field that is not there

Writes = Mapping[str, Write]
Fields = Mapping[str, bytes]  # field -> digest


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFact:
    """An agent's effect, in any run of the lineage. The rows of undos are left out.

    `returned()` is what adopting it would save: (writes, where it went on; None for the plan's next step). `again`: a
    person sent the run back to it, so that it is undone and not adopted. `going`: an undo of it was begun, with unknown
    outcome. `undo` is empty where nothing takes it back. `taken`: its result was taken over from another run, whose
    effect it is. `shared`: another run relies on it. `left_open`: it is kept, although nobody knows whether it
    happened. `landings`: the executions that carry its result.
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

    @property
    def run_id(self) -> int:
        """Return the id of its run, as rows and headers name it."""
        return self.run


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantFact:
    """One right that an outcome gave.

    `fields()`: the state fields that the approval covers for this effect, with their digests when it was given: those
    that its actions point into and those that it binds; an empty digest for a missing field. None where unknown.
    """

    effect: str
    action: str = ""
    used_by: int = 0  # the id of the effect's row that consumed it; 0: none
    fields: Callable[[], Fields | None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFact:
    """A gate that asked, in any run of the lineage. One that had nothing to ask is only an execution.

    `kind` is its outcome's, or "open"; `seq` is the number of its checkpoint, and `execution` the id of the checkpoint
    that saved its outcome. `current`: the agent, the version and the plan that it shows are those that it would show
    now. `fields()`: the digests, when it asked, of the fields into which its actions point, as a GrantFact's;
    `reads()`: those of the fields that its step read. None where unknown.
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
    recovery: bool = False  # it asked how to go on after a failure
    current: bool = True
    fields: Callable[[], Fields | None] = lambda: None
    reads: Callable[[], Fields | None] = lambda: None
    choice: str = ""  # what was answered, where it asked a question
    permits: bool = True  # whether an answer to its question may let its step run
    about: int = 0  # the id of the effect left behind that it asks about; 0: none
    runs: frozenset[int] = frozenset()  # the runs started by another version that it asks about
    beside: bool = False  # the run went on from it, and its outcome is not on the path to the head
    refused: Sequence[Action] = ()  # settled actions, which do not run although the run goes on
    actions: frozenset[str] = frozenset()  # the ids of its actions
    opened_at: datetime = datetime.min
    closed_at: datetime | None = None

    @property
    def refusing(self) -> Sequence[Action]:
        """Return `refused`."""
        return self.refused

    @property
    def lets_run(self) -> bool:
        """Tell whether its outcome lets an effect run."""
        return bool(self.grants)


class ByHand(NamedTuple):
    """Fields of the state that somebody changed by hand, after the first `at` executions of a path."""

    at: int
    fields: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTarget:
    """The point from which the run would go on, and its state.

    `path`: the executions from the root to there, a fork's origin included; `gates`: the ids of the gates whose outcome
    is on that path. `novel`: fields whose new value no record can have; `unknown`: fields whose new value is not known
    yet, with the steps on which it depends. Both override `state` and `fields`.
    """

    run: int  # the run that goes on; 0: a fork that is not made yet
    next_step: str  # "": the run ends here
    path: Sequence[CheckpointHeader] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    fields: Fields = field(default_factory=dict)
    list_format: type[ListDigest] | None = None  # of the digests of its lists; None only without a state
    gates: Sequence[int] = ()
    by_hand: Sequence[ByHand] = ()  # on that path, and what is ordered now
    sent: int = 0  # executions before the point to which a person last moved the run, or at which they changed it
    fork: bool = False  # the run was forked from another, or would be
    branched: bool | None = None  # it has checkpoints off the path, without which no record is looked up; None: unknown
    own: frozenset[str] = frozenset()  # effect steps that this fork performs itself, as a person answered
    forced: bool = False  # `next_step` runs despite its records
    again: bool = False  # a person sends it back to `next_step`, so that an effect done there is done again
    takes_up: bool = False  # a person moves the run: effects on its path stand, even if left behind or ordered again
    asking: Mapping[str, int] = field(default_factory=dict)  # gates that are open beside it: step -> seq
    leave: bool = False  # effects left behind stay as they are when the run ends here
    fails: bool = False  # the run ends here without having completed: those that it started end too
    novel: frozenset[str] = frozenset()
    unknown: Mapping[str, frozenset[str]] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)  # the run's configuration, as JSON values
    settled: Mapping[int, str] = field(default_factory=dict)  # effect id -> the status that the decision gives it
    awaited: frozenset[int] = frozenset()  # effects whose outcome the run waits for: not left behind
    withdrawn: frozenset[int] = frozenset()  # runs that it started, and that the decision has undone
    deciding: int = 0  # the gate that is decided
    decision: str = ""  # the kind of its outcome
    grants: Sequence[GrantFact] = ()  # the rights that the decision gives
    refused: Sequence[Action] = ()  # the actions that it refuses or answers


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedHistory:
    """The records of a lineage. `plan` is the one that the run would go on with.

    `head` is where the run stands, without its state. `head.sent` counts to the newest rewind, edit, fork or upcast.
    """

    plan: PlanSpec
    head: MoveTarget
    executions: Sequence[CheckpointHeader] = ()  # of all runs and branches, by time: where two match, the last counts
    effects: Sequence[EffectFact] = ()
    gates: Sequence[GateFact] = ()
    places: Sequence[CheckpointHeader] = ()  # every checkpoint on the path to the head, of any kind
    ending: bool = False  # the run ends as soon as the effects it left behind are settled
    reopened: str = ""  # the effect for which the gate at the head was reopened
    # Whether a gate's method asks something about a state; None where the method cannot be called.
    draws: Callable[[str, Mapping[str, Any]], bool | None] = lambda step, state: None
    # The writes that reusing an execution would save. Raises a CheckpointError where it cannot be reused and the step
    # runs.
    writes: Callable[[UUID], Writes] = lambda execution: {}
    # What becomes of the runs that the run started, if it goes on from a target with this impact.
    children: Callable[[MoveTarget, Impact], tuple[ImpactChild, ...]] = lambda target, impact: ()
    stamp: str = ""  # what it was read by, see approvals.consequences.impact_sources.stamp_of
