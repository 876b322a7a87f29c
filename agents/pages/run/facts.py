"""The facts about a run as plain data: the input of its timeline, head, effects and events.

Ids of checkpoints are their hex strings. Everything that an agent or a person outside the team may have written
is marked below; the templates show it as untrusted text and nothing here interprets it. A failed attempt is read from
its own row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.effects.ledger import LedgerRow
from agents.models import Failure, StepCheckpoint, Wait
from approvals.models import Decision
from approvals.preflight import RemoteProgram
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec, in_words

Called = Callable[[str], str]  # returns the title of a step of the run's plan


@dataclass(frozen=True, slots=True)
class TimelineCheckpoint:
    """One checkpoint: its position, and how it came to be. `words` are the step's own notes (untrusted).

    `execution` identifies step, input and occurrence; two checkpoints of one execution hold the same output.
    """

    id: str
    seq: int
    parent: str
    kind: str
    step: str
    at: datetime
    took: timedelta = timedelta()
    attempt: int = 1
    words: tuple[str, ...] = ()
    execution: str = ""
    twin: str = ""  # the checkpoint whose output was reused: "4", or "4 of R-7"
    next_step: str = ""
    by: str = ""  # who ordered it, where a person did
    why: str = ""  # their reason (untrusted)
    origin: str = ""  # the checkpoint of another run that it follows: "3 of R-7"
    version: str = ""  # of the agent, where the run was upgraded to it
    name: str = ""  # given by a person (untrusted)
    noted: int = 0  # people's notes on it


@dataclass(frozen=True, slots=True)
class TimelineDecision:
    """One decision on a gate. `comment` is a person's text (untrusted); a decision that no longer counts has lapsed."""

    name: str
    verdict: str
    comment: str = ""
    counts: bool = True


@dataclass(frozen=True, slots=True)
class TimelineGate:
    """A gate that was opened on the state of the checkpoint `base`. `outcome` is empty while it is open."""

    id: int
    base: str
    step: str
    kind: str
    status: str
    opened_at: datetime
    closed_at: datetime | None = None
    deadline: datetime | None = None
    quorum: int = 1
    outcome: str = ""
    then: str = ""
    back_to: str = ""
    answer: str = ""  # the choice at a recovery gate
    answer_label: str = ""  # that choice as the question put it (untrusted)
    actions: tuple[str, ...] = ()  # the outcome of each where not all of them run: "rejected 3 Write to them"
    decisions: tuple[TimelineDecision, ...] = ()
    visible: bool = True  # the reader may open the gate's own page

    @property
    def agreed(self) -> int:
        """Count the decisions that approve and still count."""
        return sum(vote.counts and vote.verdict in Decision.APPROVING for vote in self.decisions)


@dataclass(frozen=True, slots=True)
class TimelineFork:
    """Another run of the lineage that the reader may see, forked at the checkpoint `origin`; empty: the first run."""

    run: int
    origin: str
    status: str
    at: datetime
    by: str
    title: str = ""  # if it has its own (untrusted)


@dataclass(slots=True)
class TimelineGap:
    """Checkpoints that retention removed: their numbers, the first and last time of removal, and the policies."""

    first: int
    last: int
    since: datetime
    upto: datetime
    policies: list[str]


@dataclass(frozen=True, slots=True)
class Story:
    """The facts about a run as it is now, with all its checkpoints or a window of them.

    `saved` ascends by seq, `path` holds the ids from the root to the head. Of `run` only columns are read.
    """

    now: datetime
    run: Run
    head: str
    saved: tuple[TimelineCheckpoint, ...]
    path: frozenset[str]
    plan: tuple[StepSpec, ...] = ()
    gates: tuple[TimelineGate, ...] = ()
    failures: tuple[Failure, ...] = ()
    effects: tuple[LedgerRow, ...] = ()
    forks: tuple[TimelineFork, ...] = ()
    pruned: tuple[TimelineGap, ...] = ()
    newest: bool = True  # the window reaches up to the newest checkpoint
    started_by: str = ""
    changed_at: datetime | None = None  # when it ended
    ended_by: str = ""
    origin: str = ""  # where a fork began
    program: RemoteProgram | None = None  # of an external agent, while the run lives
    wait: Wait | None = None  # what its step waits for
    step_checkpoints: Sequence[StepCheckpoint] = ()  # what its step has kept so far, without the values; newest first

    @property
    def holding(self) -> tuple[TimelineGate, ...]:
        """Return the open gates that hold the run, oldest first."""
        head, waits = self.run.head.hex if self.run.head else "", bool(self.wait or self.run.awaited)
        return tuple(gate for gate in self.gates if gate.status == "open" and holds_run(head, gate.base, waits=waits))

    @property
    def gone(self) -> bool:
        """Tell whether an external program has the run and has been silent for too long."""
        return self.run.status == "running" and self.program is not None and self.program.missed

    def called(self, step: str) -> str:
        """Return the title of a step."""
        return next((spec.title for spec in self.plan if spec.name == step and spec.title), in_words(step))

    def remaining_steps(self) -> tuple[StepSpec, ...]:
        """Return the plan's steps from the next one on."""
        names = [step.name for step in self.plan]
        return self.plan[names.index(self.run.next_step) :] if self.run.next_step in names else ()

    def reused(self) -> dict[str, list[int]]:
        """Map each execution to the numbers of the checkpoints that reused its output."""
        found: dict[str, list[int]] = {}
        for saved in self.saved:
            if saved.kind == "reused" and saved.execution:
                found.setdefault(saved.execution, []).append(saved.seq)
        return found


def holds_run(head: str, base: str, *, waits: bool) -> bool:
    """Tell whether an open gate on the state `base` holds a run; one beside a run that `waits` itself does not.

    `waits`: for a time, a signal or its children.
    """
    return base == head or not waits
