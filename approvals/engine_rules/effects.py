"""Rules for effects: adopting, asking, leaving behind, settling and undoing.

Also here: rules for steps: reuse, loop guards, and the irreversible steps that a repair does not redo.

Also here: rules for the runs that a step starts: gathering their results, and what a run's path counts on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values.checkpoint_kinds import OUTPUT_LANDED

LANDED = ("done", "kept")  # a later execution may adopt these
IN_DOUBT = ("intended", "unknown")  # nobody knows yet whether it happened
OPEN = ("done", *IN_DOUBT)  # settled where the run's path does not carry the result
FAILED, UNDONE = "failed", "undone"
ABANDONED = "abandoned"  # of unknown outcome, and a person had it done again
GONE = (FAILED, UNDONE, ABANDONED)  # nothing of it is left for a fork to ask about


class Status(Protocol):
    """The status of an effect. `again`: a person sent the run back to do it again."""

    @property
    def status(self) -> str: ...
    @property
    def again(self) -> bool: ...


class EffectRow(Status, Protocol):
    """An effect, as the runner's table or the impact's facts have it.

    `going`: an undo of it was begun, with unknown outcome. `left_open`: it is kept, although nobody knows whether it
    happened. `taken`: it is another run's.
    """

    @property
    def id(self) -> int: ...
    @property
    def step(self) -> str: ...
    @property
    def irreversible(self) -> bool: ...
    @property
    def going(self) -> bool: ...
    @property
    def left_open(self) -> bool: ...
    @property
    def taken(self) -> bool: ...


class ExecutedEffect(EffectRow, Protocol):
    """An effect with its execution: of a step on an input, for the `occurrence`th time. Redone: in a new generation."""

    @property
    def run_id(self) -> int: ...
    @property
    def input_digest(self) -> Hashable: ...
    @property
    def occurrence(self) -> int: ...
    @property
    def generation(self) -> int: ...


Row = TypeVar("Row", bound=EffectRow)
Executed = TypeVar("Executed", bound=ExecutedEffect)


def left_open(status: str, *, known: bool) -> bool:
    """Tell whether a person left an effect open: it is kept, and it is not `known` to have happened."""
    return status == "kept" and not known


def awaited(step: str, since: Iterable[tuple[str, str]] | None) -> bool:
    """Tell whether the run is still where the effect `step` was started, and at most asked about it `since`.

    `since`: (kind, step) of the checkpoints that follow the start on the path; None where that is not on the path.
    """
    return since is not None and all(each == ("recovery", step) for each in since)


def happened(row: EffectRow) -> bool:
    """Tell whether it is known to be done."""
    return row.status in LANDED and not row.left_open


def there(row: EffectRow) -> bool:
    """Tell whether it is known to be done, and no undo of it was begun."""
    return happened(row) and not row.going


def adoptable(row: EffectRow) -> bool:
    """Tell whether an execution may take its result over: it is done, not being undone, and not ordered again."""
    return there(row) and not row.again


def doubted(row: EffectRow) -> bool:
    """Tell whether the run has to find out or ask whether it happened, where it comes to it."""
    return not row.again and (row.status in IN_DOUBT or row.left_open)


def unclear(row: EffectRow) -> bool:
    """Tell whether its settling may first ask a person."""
    return row.status in IN_DOUBT or (row.status == "done" and row.going)


def asked_about(row: EffectRow) -> bool:
    """Tell whether a fork asks before it does again what another run did."""
    return row.status not in GONE and not row.taken


def taken_up(row: EffectRow, *, on_path: bool) -> bool:
    """Tell whether it counts as done after a person moved the run to a path that carries its result."""
    return happened(row) and on_path


def left_behind(row: Status, *, on_path: bool) -> bool:
    """Tell whether it has to be settled: the path does not carry its result, or a person ordered it again."""
    return row.status in OPEN and (row.again or not on_path)


def repeatable(rows: Iterable[Executed]) -> list[Executed]:
    """List the effects that were or may have been done, so that doing the same again repeats them.

    One that was abandoned counts until a newer generation is done, or may be: one that failed or was undone leaves it
    as doubtful as it was. One that was taken over counts only for its origin.
    """
    known = [row for row in rows if not row.taken and row.status not in (FAILED, UNDONE)]
    newest: dict[Hashable, int] = {}
    for row in known:
        newest[_execution(row)] = max(row.generation, newest.get(_execution(row), 0))
    return [
        row
        for row in known
        if row.status in (*LANDED, *IN_DOUBT) or (row.status == ABANDONED and row.generation == newest[_execution(row)])
    ]


def _execution(row: ExecutedEffect) -> Hashable:
    return row.run_id, row.step, row.input_digest, row.occurrence


def depended_on(landings: Iterable[UUID], *, taken: Iterable[Status], forks: Iterable[Set[UUID]]) -> bool:
    """Tell whether another run depends on an effect with these landings, so that undoing it would break that run.

    `taken`: the rows that took its result over; `forks`: the path to where each other run of the lineage was forked. A
    fork that begins after the effect was done has the result in its state.
    """
    found = frozenset(landings)
    return any(row.status in LANDED for row in taken) or any(not path.isdisjoint(found) for path in forks)


def undoable(row: EffectRow, *, undo: str, shared: Callable[[], bool]) -> bool:
    """Tell whether the step's `undo` takes it back; never an effect that another run did, or depends on (`shared`)."""
    return bool(undo) and not (row.irreversible or row.taken or shared())


def due(left: Iterable[Row], plan: PlanSpec, *, about_to: str = "") -> list[Row]:
    """List the effects left behind that have to be settled before the effect step `about_to`, or before the run's end.

    An effect that a step ahead may still adopt waits. An effect of an earlier attempt at the same step never waits, nor
    does an undo that was begun.
    """
    later = {name for way in plan.successors(about_to) for name in plan.reachable(way)} if about_to else set()
    return [
        row
        for row in left
        if row.again or row.going or row.step not in later or (row.step == about_to and row.status in IN_DOUBT)
    ]


def made_of(row: Row, left: Sequence[Row], plan: PlanSpec) -> list[Row]:
    """List the later effects left behind that depend on the result of `row`: they are settled with it."""
    of = plan.dependents(row.step) if any(step.name == row.step for step in plan.steps) else set()
    return [each for each in left if each.id > row.id and each.step in of]


def runs_anyway(spec: StepSpec, *, forced: bool) -> bool:
    """Tell whether a plain step runs despite a recorded output: a person sent the run to it, or it reads the world."""
    return forced or spec.reads_world


def fits(plan: PlanSpec, spec: StepSpec, next_step: str) -> bool:
    """Tell whether a recorded output fits this plan, in which the step may lead elsewhere."""
    return next_step in plan.successors(spec.name)


def last_start(path: Iterable[CheckpointHeader], step: str) -> CheckpointHeader | None:
    """Return the last execution of a step, to whose start the run is sent back; None where it never ran."""
    return next((place for place in reversed([*path]) if place.step == step and place.kind in OUTPUT_LANDED), None)


def at_guard(spec: StepSpec, times: int) -> bool:
    """Tell whether a person is asked before the step, which ran `times` times on this path, runs again."""
    return bool(spec.loop_guard) and times >= spec.loop_guard


def crosses_final(plan: PlanSpec, executed: Sequence[str], judged: StepSpec) -> bool:
    """Tell whether redoing these executions for `judged` might repeat an irreversible effect."""
    redone = plan.redone(executed, [judged.feedback] if judged.feedback else [])
    return any(plan.step(name).irreversible for name in redone)


COMPLETED = "completed"
LOST = ("failed", "cancelled")
ENDED = (COMPLETED, *LOST)


class Gathered(NamedTuple):
    """The state of a gathering of which `need` children have to complete.

    `missing`: how many have to complete yet; 0 where nothing is to be waited for. `lost`: the place of the child for
    which the others are in vain; None where the need is, or may still be, met.
    """

    missing: int
    lost: int | None = None


def gathered(statuses: Sequence[str], need: int) -> Gathered:
    """Tell whether enough children have completed, or too few are left that could."""
    done = sum(status == COMPLETED for status in statuses)
    lost = [place for place, status in enumerate(statuses) if status in LOST]
    if done >= need:
        return Gathered(0)
    if len(statuses) - len(lost) < need:
        return Gathered(0, lost[0])
    return Gathered(need - done)


def stands(*, on_path: bool, begun: bool) -> bool:
    """Tell whether a run counts on a child: a step that did is `on_path`, or the step at hand has `begun` it."""
    return on_path or begun


def begun(step: str, next_step: str, since: Iterable[str] | None, *, aside: Sequence[str]) -> bool:
    """Tell whether the run is still at the step that started a child, with at most checkpoints `aside` since.

    `since`: the kinds of the checkpoints that follow the start of the step; None where that is not on the path.
    """
    return since is not None and step == next_step and all(kind in aside for kind in since)


def lost(status: str, ordered: str) -> bool:
    """Tell whether a child has no result, nor will have one that counts.

    One that was told to stop and had completed before it heard of that has its result.
    """
    return status in LOST or ordered == "undo" or (bool(ordered) and status != COMPLETED)


def unsettled(status: str, *, owes: bool, frozen: bool, tried: bool) -> bool:
    """Tell whether a child that was left behind has something to undo or to stop.

    `owes`: it, or a run below it, did something, or one below it still lives. Of a frozen one nobody knows. One that
    was `tried` to be undone and has ended has nothing more: what is left of it stays.
    """
    return not frozen and (status not in ENDED or (owes and not tried))


def may_have_acted(status: str, *, owes: bool, frozen: bool, tried: bool) -> bool:
    """Tell whether an equal child beside this one could do the same twice: also where nobody knows what it did."""
    return frozen or unsettled(status, owes=owes, frozen=frozen, tried=tried)
