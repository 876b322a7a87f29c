"""Rows of the effect ledger: the performed effects, and which of them the run has left behind."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import DateTimeField, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce, NullIf

from agents.models import Effect
from agents.presentation.timeline.facts import TimelineEffect
from approvals.engine_rules import effects
from checkpoints.models import Checkpoint
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement
from checkpoints.runs.plans import PlanSpec

from .course import Course


def execution_of(step: str, input_digest: bytes | memoryview | None, occurrence: int) -> str:
    """Return a name for an execution: step, input and occurrence. Empty for a checkpoint that is no execution."""
    return "" if input_digest is None else f"{step}/{bytes(input_digest).hex()}/{occurrence}"


# Only checkpoints of the effect's own run: one that was pruned is missing.
LANDED_IN = RawSQL(
    """ARRAY(SELECT c.seq FROM unnest(agents_effect.landings) WITH ORDINALITY l (id, n)
       JOIN checkpoints_checkpoint c ON c.id = l.id AND c.run_id = agents_effect.run_id ORDER BY l.n)""",
    (),
    output_field=ArrayField(IntegerField()),
)
# When its result was first saved; null if it never was, or if that checkpoint was pruned.
LANDED_AT = RawSQL(
    "(SELECT c.at FROM checkpoints_checkpoint c WHERE c.id = agents_effect.landings[1])",
    (),
    output_field=DateTimeField(null=True),
)


def rows_of(runs: Collection[int]) -> list[TimelineEffect]:
    """Return the ledger's rows of some runs, undos among them, in the order in which they were intended."""
    rows: list[Any] = _effects_of(list(runs))
    return [
        TimelineEffect(
            id=row.pk, run=row.run_id, step=row.step, base=row.base.hex, base_seq=row.place, key=row.key,
            status=row.status, irreversible=row.irreversible, error=row.error, intended_at=row.intended_at,
            settled_at=row.settled_at, execution=execution_of(row.step, row.input_digest, row.occurrence),
            generation=row.generation, undoes=row.undoes_id or 0, again=row.again,
            left_open=effects.left_open(row.status, known=not row.empty), action=row.performs, grant=row.grant_id,
            attempts=row.attempts, taken_from=row.of, landings=row.landings, landed=row.carried,
        )
        for row in rows
    ]  # fmt: skip


@prepared_statement
def _effects_of(runs: Any) -> QuerySet[Effect]:
    base = Checkpoint.objects.filter(pk=OuterRef("base"), run=OuterRef("run")).values("seq")
    found = Effect.objects.filter(OneOf(F("run_id"), runs)).order_by("pk")
    rows = found.annotate(
        performs=Coalesce(NullIf("action", Value("")), "grant__action", Value("")), empty=Q(result=b"null"),
        of=Coalesce("taken_from__run", 0), carried=LANDED_IN,
        place=Coalesce(Subquery(base), 0),
    )  # fmt: skip
    return rows.defer("result")


def off_course(rows: Iterable[TimelineEffect], course: Course) -> set[int]:
    """Return the ids of the run's effects that it has left behind and that are not settled."""
    open_ones = [row for row in rows if row.run == course.run and not row.undoes and row.status in effects.OPEN]
    held = course.on_path([seq for row in open_ones for seq in row.landed])
    here = {row.id for row in open_ones if held.intersection(row.landed) or course.awaits(row.base_seq, row.step)}
    return {row.id for row in open_ones if effects.left_behind(row, on_path=row.id in here)}


def done_of(plan: PlanSpec, rows: Collection[TimelineEffect], course: Course) -> list[TimelineEffect]:
    """Return the rows with the method that undoes each, and with those marked that the run has left behind."""
    undo, off = {step.name: step.undo for step in plan.steps}, off_course(rows, course)
    return [replace(effect, undo=undo.get(effect.step, ""), unsettled=effect.id in off) for effect in rows]
