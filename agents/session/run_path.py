"""The path from the root to a run's head: its executions, and the outcomes of its gates.

It is read by one query a session, on first need, and extended by what that saves. A branch that was left by a
rewind is no part of it; a fork's path begins in the run that it was forked from.

It also finds the effects that a run left behind on abandoned branches, and those that are due to be settled.

An effect whose execution is not on the path to the head is *unsettled*: a later execution of the same step on the same
input may still adopt it, so it is undone only once nothing ahead can, together with every effect that was made from its
result. Pure but for one query.

It also finds the changes that people made to a run's state by hand on its path: edits, and the feedback of rewinds.

Nobody approved these. So a permission given before does not hold for what is made from them; see
approvals.cards.binding.loose_names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from agents.models import Effect
from approvals.engine_rules import effects, permissions
from checkpoints import store
from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.models import Run
from checkpoints.runs.plans import PlanSpec
from checkpoints.store import executions
from checkpoints.store.loading import CheckpointHeader, trace_ancestry
from checkpoints.values.checkpoint_kinds import ASIDE, MAY_LEAVE_BEHIND, MOVED_BY_PERSON, OUTPUT_LANDED, Kind

FORCING = ("rewind", "repair")  # kinds after which the next step runs whatever is recorded


@dataclass
class RunPath:
    """The checkpoints of a path, root first. Counts are kept up to date: a step must not cost more in a long run."""

    places: list[CheckpointHeader]
    counts: Counter[tuple[str, bytes | None]] = field(default_factory=Counter)
    numbers: dict[UUID, int] = field(default_factory=dict)  # the place of each checkpoint

    def __post_init__(self) -> None:
        self.numbers = {place.id: number for number, place in enumerate(self.places)}
        self.counts = Counter((place.step, place.input_digest) for place in self.places)

    @classmethod
    def to(cls, head: UUID, known: Sequence[CheckpointHeader] = ()) -> RunPath:
        """Return the path that ends at `head`; an empty one where there is no such checkpoint.

        Checkpoints that are `known` are not read.
        """
        try:
            return cls(executions.path(head, known))
        except NoSuchCheckpoint:
            return cls([])

    @classmethod
    def within(cls, head: UUID, known: Mapping[UUID, CheckpointHeader]) -> RunPath:
        """Return the path that ends at `head`, from headers that are loaded already. Raises NoSuchCheckpoint."""
        found = trace_ancestry(head, known)
        if not found:
            raise NoSuchCheckpoint
        return cls(found)

    @property
    def ids(self) -> KeysView[UUID]:
        """Return the checkpoints on the path."""
        return self.numbers.keys()

    @property
    def head(self) -> CheckpointHeader:
        return self.places[-1]

    @property
    def runs(self) -> set[int]:
        """Return the runs that the path leads through: a fork's begins in another."""
        return {place.run_id for place in self.places}

    def add(self, place: CheckpointHeader) -> None:
        """Extend the path by the checkpoint that was just saved on it."""
        self.numbers[place.id] = len(self.places)
        self.places.append(place)
        self.counts[place.step, place.input_digest] += 1

    def occurrences(self, step: str, input_digest: bytes) -> int:
        """Count how often this step was executed with this input."""
        return self.counts[step, input_digest]

    def executions(self, step: str) -> int:
        """Count how often this step was executed, on any input."""
        return sum(1 for place in self.places if place.step == step and place.kind in OUTPUT_LANDED)

    def holds(self, checkpoints: Iterable[UUID]) -> bool:
        """Tell whether one of these checkpoints is on the path."""
        return not self.ids.isdisjoint(checkpoints)

    def after(self, checkpoint: UUID) -> list[CheckpointHeader] | None:
        """Return the headers that follow a checkpoint; None where it is not on the path."""
        number = self.numbers.get(checkpoint)
        return None if number is None else self.places[number + 1 :]

    def kinds_after(self, checkpoint: UUID) -> Iterator[str] | None:
        """Return the kinds of the headers that follow a checkpoint, as far as they are asked for; as `after`."""
        number = self.numbers.get(checkpoint)
        if number is None:
            return None
        return (self.places[later].kind for later in range(number + 1, len(self.places)))

    def forced(self, step: str) -> bool:
        """Tell whether a person or a repair sent the run to `step`, so that it runs even if an output is recorded."""
        place = self.sent(step)
        return place is not None and place.kind in FORCING

    def sent(self, step: str) -> CheckpointHeader | None:
        """Return the checkpoint from which the run came to `step`, before any recovery, reopening or upgrade there.

        The recovery of another step is passed over too if the run then went on with the same next step.
        """
        before = [*self.places[:1], *self.places]
        for earlier, place in zip(reversed(before[:-1]), reversed(self.places), strict=True):
            if place.kind not in ASIDE or (place.step != step and place.next_step != earlier.next_step):
                return place
            if place.kind == Kind.UPCAST and place.step == step:  # before it, the step may have another name
                step = earlier.next_step
        return None

    def branched(self, run_id: int, seq: int) -> bool:
        """Tell whether the run, whose newest checkpoint is `seq`, has executions off this path."""
        return self.places[0].run_id != run_id or len(self.places) < seq

    def moved(self) -> bool:
        """Tell whether a rewind, an edit, a repair or an upgrade ever moved the run."""
        return any(place.kind in MAY_LEAVE_BEHIND for place in self.places)

    def moves(self) -> Iterator[CheckpointHeader]:
        """Yield where people sent the run back, edited or forked it, the newest first."""
        return (place for place in reversed(self.places) if place.kind in (*MOVED_BY_PERSON, Kind.FORK))

    def caught(self) -> bool:
        """Tell whether the path goes on past a step that failed, so that what the step had begun may be left behind."""
        return any(place.kind == Kind.RECOVERY for place in self.places)

    def tried_again_since(self, checkpoint: UUID, *, besides: Collection[UUID] = ()) -> bool:
        """Tell whether a person had a step that failed tried again after this checkpoint.

        An answer about another step leaves the next step as it is. `besides`: where people were asked although nothing
        had failed; decisions at gates beside the run may come between such a question and its answer.
        """
        asked = [checkpoint]
        for place in self.after(checkpoint) or ():
            if place.kind == Kind.RECOVERY and place.step == place.next_step and not any(at in besides for at in asked):
                return True
            asked = [*asked, place.id] if place.kind == Kind.ANSWERED else [place.id]
        return False

    def upgraded_since(self, checkpoint: UUID) -> bool:
        """Tell whether the run got another version of its agent after this checkpoint."""
        return any(place.kind == Kind.UPCAST for place in self.after(checkpoint) or ())

    def before_last(self, step: str) -> UUID | None:
        """Return the checkpoint from which `step` was last executed; None where it never was."""
        started = effects.last_start(self.places, step)
        return started and started.parent

    def stands_at(self, checkpoint: UUID) -> bool:
        """Tell whether nothing but decisions at gates beside the run was saved on this path after the checkpoint."""
        for place in reversed(self.places):
            if place.id == checkpoint or place.kind != Kind.ANSWERED:
                return place.id == checkpoint
        return False

    def settled(self) -> list[UUID]:
        """Return the checkpoints at which gates were opened that have their outcome on the path, newest first."""
        return permissions.asked_on(self.places)[0][::-1]

    def asking(self) -> dict[UUID, str]:
        """Return the gates from which the run went on and whose outcome is not on the path: checkpoint -> step."""
        return {at: step for step, at in permissions.asked_on(self.places)[1].items()}

    def __iter__(self) -> Iterator[CheckpointHeader]:
        return iter(self.places)


def of_run(run_id: int, path: RunPath) -> list[Effect]:
    """Return the run's unsettled effects, oldest first."""
    rows = Effect.objects.filter(run_id=run_id, undoes__isnull=True, status__in=effects.OPEN)
    found = rows.select_related("run").prefetch_related("undos").order_by("pk")
    return [row for row in found if abandoned(row, path)]


def abandoned(row: Effect, path: RunPath) -> bool:
    """Tell whether an effect is open and off the path. One that the run is at, and asks about, is not."""
    return effects.left_behind(row, on_path=path.holds(row.landings) or awaited(row, path))


def awaited(row: Effect, path: RunPath) -> bool:
    """Tell whether the run is still at the effect's start, with nothing but recoveries of it since."""
    after = path.after(row.base)
    return effects.awaited(row.step, None if after is None else [(place.kind, place.step) for place in after])


def in_doubt(run: Run) -> bool:
    """Tell whether the run is at an effect of which nobody knows yet whether it happened."""
    rows = list(Effect.objects.filter(run=run, undoes__isnull=True, status__in=effects.IN_DOUBT))
    return bool(rows) and run.head is not None and any(awaited(row, RunPath.to(run.head)) for row in rows)


def due(rows: Sequence[Effect], plan: PlanSpec, *, about_to: str = "") -> list[Effect]:
    """Return the effects to settle before the effect step `about_to` is performed, or the run ends; newest first."""
    chosen = effects.due(rows, plan, about_to=about_to)
    found = {*chosen, *(each for row in chosen for each in effects.made_of(row, rows, plan))}
    return sorted(found, key=lambda row: row.pk, reverse=True)


class ManualChange(NamedTuple):
    """One checkpoint by which somebody moved the run, the fields that it changed, and their values before."""

    place: CheckpointHeader
    fields: frozenset[str]
    before: dict[str, Any]


def on(places: Iterable[CheckpointHeader], plan: PlanSpec) -> Iterator[ManualChange]:
    """Yield a ManualChange for each of these places at which somebody changed the state, in order."""
    # A gate sends the run back to another step than its own, with the words of whoever decides there.
    found = [each for each in places if each.kind in MOVED_BY_PERSON and each.step == each.next_step]
    moved = [(each, each.parent) for each in found if each.parent is not None]
    store.expect(id for place, parent in moved for id in (place.id, parent))
    for place, parent in moved:
        written = _written(place, parent, plan)
        if written.fields:
            yield written


def _written(place: CheckpointHeader, parent: UUID, plan: PlanSpec) -> ManualChange:
    try:
        before, now = store.load_checkpoint(parent), store.load_checkpoint(place.id)
    except (NoSuchCheckpoint, NotVerified):  # what it changed cannot be known any more, so it may be anything
        return ManualChange(place, frozenset(name for step in plan.steps for name in step.reads), {})
    changed = now.differing(before)
    return ManualChange(place, changed, {name: before.state[name] for name in changed if name in before.state})
