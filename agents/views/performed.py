"""Rows of the effect ledger as facts for agents.presentation: what was performed, and whether the path still has it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from django.db.models import Q

from agents import unsettled
from agents.history import Path
from agents.models import Effect
from agents.presentation.facts import Done
from checkpoints.models import Checkpoint, Run
from checkpoints.plans import PlanSpec


def execution_of(row: Checkpoint | Effect) -> str:
    """What was executed: step, input and occurrence. Empty for a checkpoint that is no execution."""
    return "" if row.input_digest is None else f"{row.step}/{bytes(row.input_digest).hex()}/{row.occurrence}"


def effects_of(run: Run, plan: PlanSpec, path: Path) -> Iterable[Done]:
    """The run's rows of the effect ledger, undos among them, in the order in which they were intended."""
    return done_of(plan, rows_of([run.pk]), path)


def rows_of(runs: Collection[int]) -> list[Effect]:
    """The ledger's rows of some runs, without their results; `empty` where there is none."""
    rows = Effect.objects.filter(run__in=runs).select_related("taken_from").order_by("pk")
    return list(rows.defer("result", "taken_from__result").annotate(empty=Q(result=b"null")))


def done_of(plan: PlanSpec, rows: Sequence[Effect], path: Path) -> Iterable[Done]:
    """Rows of `rows_of` as facts; those that are off `path`, which ends at their run's head, are known as such."""
    undo = {step.name: step.undo for step in plan.steps}
    for each in rows:
        yield Done(
            step=each.step,
            base=each.base.hex,
            key=each.key,
            status=each.status,
            irreversible=each.irreversible,
            undo=undo.get(each.step, ""),
            error=each.error,
            at=each.settled_at or each.intended_at,
            id=each.pk,
            execution=execution_of(each),
            generation=each.generation,
            undoes=each.undoes_id or 0,
            unsettled=off_path(each, path),
            again=each.again,
            left_open=each.status == Effect.Status.KEPT and bool(getattr(each, "empty", False)),
            taken_from=f"R-{each.taken_from.run_id}" if each.taken_from else "",
        )


def off_path(row: Effect, path: Path) -> bool:
    """Whether the run has left the effect behind, and nothing has settled it yet."""
    known = bool(path.places) and row.undoes_id is None and row.status in unsettled.OPEN
    return known and unsettled.abandoned(row, path)


def landings(run: Run, effects: Iterable[Done]) -> dict[tuple[str, str], int]:
    """(base, step) of the effects that were saved outside the window -> the number of the checkpoint."""
    wanted = {(done.base, done.step) for done in effects}
    if not wanted:
        return {}
    saved = Checkpoint.objects.filter(run=run, kind="step", parent__in={UUID(base) for base, _ in wanted})
    found = saved.values_list("parent", "step", "seq")
    return {(parent.hex, step): seq for parent, step, seq in found if parent}
