"""Rows of the effect ledger as facts for agents.presentation: what was performed, and whether the path still has it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db.models import DateTimeField, F, IntegerField, OuterRef, Q, Subquery, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce, NullIf

from agents.models import Effect
from agents.presentation.timeline.course import Course
from agents.presentation.timeline.facts import TimelineEffect
from approvals.engine_rules import effects
from checkpoints.models import Checkpoint, Run
from checkpoints.runs.plans import PlanSpec


def execution_of(row: Checkpoint | PerformedEffect) -> str:
    """Say what was executed: step, input and occurrence. Empty for a checkpoint that is no execution."""
    return "" if row.input_digest is None else f"{row.step}/{bytes(row.input_digest).hex()}/{row.occurrence}"


class PerformedEffect(NamedTuple):
    """A row of the ledger without its result; `landed` are the numbers of its run's checkpoints that carry it."""

    id: int
    run: int
    step: str
    base: UUID
    key: str
    status: str
    irreversible: bool
    error: str
    intended_at: datetime
    settled_at: datetime | None
    input_digest: bytes
    occurrence: int
    generation: int
    undoes: int
    again: bool
    empty: bool  # it has no result
    action: str
    grant: int | None
    attempts: int
    taken_from: int  # the run whose effect it was
    landings: list[UUID]
    landed: list[int]
    base_seq: int  # 0: of another run, or not there any more


# The rows of the run alone: a landing may be in none of them, where what it was in was pruned.
LANDED_IN = RawSQL(
    """ARRAY(SELECT c.seq FROM unnest(agents_effect.landings) WITH ORDINALITY l (id, n)
       JOIN checkpoints_checkpoint c ON c.id = l.id AND c.run_id = agents_effect.run_id ORDER BY l.n)""",
    (),
    output_field=ArrayField(IntegerField()),
)
# When its result was saved first; null where it was not, or that checkpoint was pruned.
LANDED_AT = RawSQL(
    "(SELECT c.at FROM checkpoints_checkpoint c WHERE c.id = agents_effect.landings[1])",
    (),
    output_field=DateTimeField(null=True),
)


def performed_of(run: Run) -> list[PerformedEffect]:
    """Return the run's rows of the effect ledger, undos among them, in the order in which they were intended."""
    return rows_of([run.pk])


def rows_of(runs: Collection[int]) -> list[PerformedEffect]:
    """Return the ledger's rows of some runs."""
    base = Checkpoint.objects.filter(pk=OuterRef("base"), run=OuterRef("run")).values("seq")
    found = Effect.objects.filter(run__in=runs).order_by("pk")
    performs = Coalesce(NullIf("action", Value("")), "grant__action", Value(""))
    rows = found.annotate(
        performs=performs, empty=Q(result=b"null"), of=F("taken_from__run"), carried=LANDED_IN, base_seq=Subquery(base)
    ).values_list(
        "id", "run_id", "step", "base", "key", "status", "irreversible", "error", "intended_at", "settled_at",
        "input_digest", "occurrence", "generation", "undoes_id", "again", "empty", "performs", "grant_id", "attempts",
        "of", "landings", "carried", "base_seq",
    )  # fmt: skip
    made = (PerformedEffect._make(row) for row in rows)
    return [
        row._replace(
            input_digest=bytes(row.input_digest), undoes=row.undoes or 0, taken_from=row.taken_from or 0,
            base_seq=row.base_seq or 0,
        )
        for row in made
    ]  # fmt: skip


def off_course(rows: Iterable[PerformedEffect], course: Course) -> set[int]:
    """Return the effects of the run, by id, that it has left behind and that nothing has settled."""
    open_ones = [row for row in rows if row.run == course.run and not row.undoes and row.status in effects.OPEN]
    held = course.of([seq for row in open_ones for seq in row.landed])
    return {
        row.id
        for row in open_ones
        if effects.left_behind(row, on_path=bool(held.intersection(row.landed)) or course.waits(row.base_seq, row.step))
    }


def done_of(plan: PlanSpec, rows: Iterable[PerformedEffect], off: Collection[int]) -> Iterable[TimelineEffect]:
    """Yield rows of the ledger as facts; those of `off` are known to be off the run's path."""
    undo = {step.name: step.undo for step in plan.steps}
    for each in rows:
        yield TimelineEffect(
            step=each.step,
            base=each.base.hex,
            key=each.key,
            status=each.status,
            irreversible=each.irreversible,
            undo=undo.get(each.step, ""),
            error=each.error,
            at=each.settled_at or each.intended_at,
            id=each.id,
            execution=execution_of(each),
            generation=each.generation,
            undoes=each.undoes,
            unsettled=each.id in off,
            again=each.again,
            left_open=each.status == Effect.Status.KEPT and each.empty,
            taken_from=f"R-{each.taken_from}" if each.taken_from else "",
        )
