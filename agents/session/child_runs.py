"""Finds which of a run's children its path counts on, and which were left behind.

A child stands where a step on the path was saved that counts on it, or where the step at hand has begun it. Whatever
is left behind may be taken over by an equal spawn, and is undone before the run ends, unless another run of the lineage
counts on it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from agents.definition import registry
from agents.models import ChildLink, Effect
from approvals.engine_rules import effects
from approvals.models import Gate
from checkpoints.models import Checkpoint, Run
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.postgresql.sql import run_sql
from checkpoints.runs.plans import PlanSpec
from checkpoints.store import executions
from checkpoints.values.checkpoint_kinds import ASIDE

from .run_path import RunPath

_BELOW = "FROM family JOIN agents_childlink link ON link.parent_id = family.id"
_FAMILIES = f"""
WITH RECURSIVE family AS (
  SELECT id, id AS top FROM unnest($1::bigint[]) id UNION ALL SELECT link.run_id, top {_BELOW}
)
SELECT id, top FROM family
"""  # noqa: S608 - constants
# Whether a child, or a run below it, has effects that may have to be undone, or one below it still lives.
_OWES = RawSQL(  # noqa: S611 - constants
    f"""EXISTS (
  WITH RECURSIVE family AS (SELECT agents_childlink.run_id AS id UNION ALL SELECT link.run_id {_BELOW})
  SELECT FROM family JOIN checkpoints_run run ON run.id = family.id
  WHERE (run.id <> agents_childlink.run_id AND run.status = ANY(%s))
    OR EXISTS (SELECT FROM agents_effect WHERE run_id = run.id AND undoes_id IS NULL AND status = ANY(%s)))""",  # noqa: S608
    [[str(status) for status in Run.LIVE], list(effects.OPEN)],
    output_field=BooleanField(),
)


def done_by(runs: Collection[int]) -> dict[int, list[Effect]]:
    """Return, by each of these runs, the effects that are done, or may be, by it and by all that it started."""
    found: dict[int, list[Effect]] = {run: [] for run in runs}
    if not found:
        return found  # before a query is built
    tops = dict(run_sql(_FAMILIES, [list(runs)]))
    rows = Effect.objects.filter(run__in=tops, undoes__isnull=True, status__in=effects.OPEN).order_by("pk")
    for row in rows.select_related("run__plan"):
        found[tops[row.run_id]].append(row)
    return found


def is_unsettled(row: ChildLink) -> bool:
    """Tell whether a child, or a run below it, has something to undo or to stop."""
    return any(map(is_left, _with_effects(ChildLink.objects.filter(pk=row.pk))))


def of_run(run_id: int) -> list[ChildLink]:
    """Return all children of a run, oldest first, each with whether it, or a run below it, has something to undo."""
    return _of_run(run_id)


@prepared_statement
def _of_run(run: Any) -> QuerySet[ChildLink]:
    return _with_effects(ChildLink.objects.filter(parent=run))


def of_lineage(lineage: int) -> list[ChildLink]:
    """Return, as `of_run`, the children of a run and its forks."""
    return list(_with_effects(ChildLink.objects.filter(parent__in=Run.objects.of_lineage(lineage).values("pk"))))


def _with_effects(rows: QuerySet[ChildLink]) -> QuerySet[ChildLink]:
    found: QuerySet[Any] = rows.select_related("run__plan").order_by("pk")
    marked: QuerySet[ChildLink] = found.annotate(**{"owes": _OWES})
    return marked


def family(run_id: int) -> list[Run]:
    """Return a run with all that it started, at any depth, each after the run that started it."""
    found = list(Run.objects.select_related("plan").filter(pk=run_id))
    for each in found:
        found += Run.objects.select_related("plan").filter(parent=each.pk).order_by("pk")
    return found


def family_ids(run_id: int) -> list[int]:
    """Return the ids of a run and of all that it started, at any depth, in one statement."""
    return [each for each, _ in run_sql(_FAMILIES, [[run_id]])]


def stands(row: ChildLink, path: RunPath) -> bool:
    """Tell whether the path counts on a child."""
    next_step = path.head.next_step if path.places else ""
    begun = effects.begun(row.step, next_step, path.kinds_after(row.base), aside=ASIDE)
    return effects.stands(on_path=path.holds(row.landings), begun=begun)


def left_by(run_id: int, step: str, plan: PlanSpec, path: RunPath) -> list[ChildLink]:
    """Return the children that a step started on branches which the run has left, oldest first."""
    rows = ChildLink.objects.filter(_of_step(step, plan), parent=run_id).select_related("run").order_by("pk")
    return [row for row in rows if not stands(row, path)]


def _of_step(step: str, plan: PlanSpec) -> Q:
    """Select the children of a step, and those of steps that the plan does not have.

    A run that goes back to before an upgrade, and a fork into another version, find children under the names that their
    steps were given then.
    """
    return Q(step=step) | ~Q(step__in=[each.name for each in plan.steps])


def started_under_others(rows: Collection[ChildLink], plan_id: int) -> list[ChildLink]:
    """Return those of these children that their parent started, or last counted on, under another plan than this."""
    others = Checkpoint.objects.filter(pk__in=[row.head for row in rows]).exclude(plan=plan_id)
    heads = set(others.values_list("pk", flat=True))
    return [row for row in rows if row.head in heads]


def done_for_kin(run: Run, step: str, plan: PlanSpec) -> list[ChildLink]:
    """Return the children of this step that completed for the other runs of the lineage, oldest first."""
    kin = Run.objects.of_lineage(run.lineage).exclude(pk=run.pk).values("pk")
    rows = ChildLink.objects.filter(_of_step(step, plan), parent__in=kin, run__status=Run.Status.COMPLETED)
    return list(rows.exclude(ordered=ChildLink.Order.UNDO).select_related("run").order_by("pk"))


def undone_on(run: Run, path: RunPath) -> int | None:
    """Return a child on which a step of this path counts, although it was undone since; None for none."""
    kin = Run.objects.of_lineage(run.lineage).values("pk")
    rows = ChildLink.objects.filter(parent__in=kin, ordered=ChildLink.Order.UNDO).order_by("pk")
    return next((row.run_id for row in rows if path.holds(row.landings)), None)


def unsettled(ids: Collection[int]) -> list[ChildLink]:
    """Return those of these rows that have something to undo or to stop, oldest first; read anew."""
    return [row for row in _with_effects(ChildLink.objects.filter(pk__in=ids)) if is_left(row)]


def acting(ids: Collection[int]) -> list[ChildLink]:
    """Return those of these rows beside which nothing may start unasked, oldest first; read anew.

    Also what cannot be undone, since another run of the lineage counts on it, or since it is frozen.
    """
    rows = _with_effects(ChildLink.objects.filter(pk__in=ids))
    return [row for row in rows if _holds_for(effects.may_have_acted, row)]


def undoable(rows: Sequence[ChildLink], run_id: int) -> list[ChildLink]:
    """Return those of these children that this run may have undone."""
    own = [row for row in rows if row.parent_id == run_id and not row.undone and not row.run.frozen]
    kept = kept_for_kin(own)
    return [row for row in own if row.pk not in kept]


def of_other_versions(rows: Collection[ChildLink]) -> set[int]:
    """Return those of these children, by their keys, that have begun in another version than a new one would."""
    names = {row.agent for row in rows} & registry.names()
    served = {(known.spec.agent, known.spec.version) for known in map(registry.agent_named, names)}
    saved = Checkpoint.objects.filter(run__in=[row.run_id for row in rows])
    found = saved.values_list("run_id", "plan__agent", "plan__version").distinct() if rows else ()
    others = {run for run, *version in found if tuple(version) not in served}
    return {row.pk for row in rows if row.run_id in others}


def left_behind(rows: Sequence[ChildLink], path: RunPath, counted: Collection[int] | None = None) -> list[ChildLink]:
    """Return those of these children, of `of_run`, that were left behind and have something to undo or to stop.

    `counted`: where the step at hand is about to be over, those that stand besides what is on the path.
    """
    left = [row for row in rows if not _counts(row, path, counted) and is_left(row)]
    kept = kept_for_kin(left)
    return [row for row in left if row.pk not in kept]


def _counts(row: ChildLink, path: RunPath, counted: Collection[int] | None) -> bool:
    return stands(row, path) if counted is None else row.pk in counted or path.holds(row.landings)


def kept_for_kin(rows: Sequence[ChildLink]) -> set[int]:
    """Return those of these children of one run, by their keys, on which another run of its lineage counts.

    It has saved a step that took the child's result, or was forked after such a step.
    """
    landed = [row for row in rows if row.landings]
    if not landed:
        return set()
    parent = Run.objects.get(pk=landed[0].parent_id)
    kin = dict(Run.objects.of_lineage(parent.lineage).exclude(pk=parent.pk).values_list("pk", "forked_from"))
    if not kin:
        return set()
    counted = {each.id for each in executions.executions(parent.lineage) if each.run_id in kin}  # also what was pruned
    counted |= {each for start in kin.values() if start for each in RunPath.to(start).ids}
    return {row.pk for row in landed if not counted.isdisjoint(row.landings)}


def asked_about(gate: Gate) -> list[int]:
    """Return the children that a recovery gate asks about, which another version started; none for any other gate."""
    return list(gate.asked.question.get("runs", ())) if gate.asked.question else []


def lock(rows: QuerySet[ChildLink]) -> list[ChildLink]:
    """Lock children, oldest first: nobody begins to count on them, or orders them undone, meanwhile.

    A run's row is locked before its children's.
    """
    return list(rows.select_for_update(of=("self",)).order_by("pk"))


def lock_lineage(run: Run) -> None:
    """Lock the run's row, and the children of its whole lineage."""
    Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    lock(ChildLink.objects.filter(parent__in=Run.objects.of_lineage(run.lineage).values("pk")))


def count_on(ids: Sequence[int]) -> bool:
    """Lock the children on which the transaction is to count; False if one of them is, or is to be, undone."""
    return not any(row.undone for row in lock(ChildLink.objects.filter(pk__in=ids)))


def is_left(row: ChildLink) -> bool:
    """Tell whether a child, of `of_run`, or a run below it, has something to undo or to stop."""
    return _holds_for(effects.unsettled, row)


def _holds_for(rule: Callable[..., bool], row: ChildLink) -> bool:
    return rule(row.run.status, owes=bool(vars(row)["owes"]), frozen=row.run.frozen, tried=row.tried)
