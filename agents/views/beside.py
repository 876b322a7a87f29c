"""What stands from before beside the way to each of some gates: for lists, where no impact is worked out.

It tells of effects that the gate allows again and that nothing on the way to it holds. An impact knows more: what would
be taken over, and which of several actions of one step is the same as before. One statement, and another one where
there is anything of the kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.db.models import Q

from agents import unsettled
from agents.models import Effect
from agents.presentation.course import Course
from approvals.cards import Card
from approvals.impact.repeats import titles
from approvals.impact.result import Repeat
from approvals.models import Gate
from checkpoints.models import Run
from checkpoints.plans import PlanSpec, spec_of

from .performed import LANDED_IN
from .reading import WAY, course_of

STANDING = (*unsettled.LANDED, *unsettled.IN_DOUBT)


def repeats_of(gates: Sequence[Gate]) -> dict[int, list[Repeat]]:
    """By gate, oldest first. Needs each gate's run with its plan."""
    cards = {gate.pk: gate.asked for gate in gates}
    done: dict[int, list[Any]] = defaultdict(list)
    for row in _rows(gates, {step for card in cards.values() for step in card.allows}):
        done[row.run.lineage or row.run_id].append(row)
    found = {gate.pk: done.get(gate.run.lineage or gate.run_id, []) for gate in gates}
    asked = [gate for gate in gates if any(row.step in cards[gate.pk].allows for row in found[gate.pk])]
    ways = {run.pk: run for run in Run.objects.filter(pk__in={gate.run_id for gate in asked}).annotate(whole=WAY)}
    told = {}
    for gate in asked:
        run: Any = ways[gate.run_id]
        way, plan = _Way(run), spec_of(gate.run.plan)
        mine = [row for row in found[gate.pk] if row.step in cards[gate.pk].allows]
        told[gate.pk] = [_told(row, cards[gate.pk], plan) for row in mine if way.leaves(row, plan)]
    return {gate: rows for gate, rows in told.items() if rows}


def _rows(gates: Sequence[Gate], steps: set[str]) -> Sequence[Any]:
    roots = {gate.run.lineage or gate.run_id for gate in gates}
    if not roots or not steps:
        return []
    kin = Run.objects.filter(Q(pk__in=roots) | Q(lineage__in=roots, forked_from__isnull=False))
    found = Effect.objects.filter(run__in=kin, step__in=steps, undoes__isnull=True, taken_from__isnull=True)
    return list(found.filter(status__in=STANDING).select_related("run").annotate(carried=LANDED_IN).order_by("pk"))


class _Way:
    """The way to a run's head, the part before its fork included."""

    def __init__(self, run: Any) -> None:
        self.course: Course = course_of(run, run.whole)
        self.origin = next(((at, seq) for number, at, seq in run.whole["turns"] if number == 1), (0, 0))

    def leaves(self, row: Any, plan: PlanSpec) -> bool:
        """Whether the effect stands beside it, and is not undone when another takes its place."""
        spec = next((step for step in plan.steps if step.name == row.step), None)
        if spec is None or spec.action:
            return False
        if row.run_id != self.course.run:
            run, seq = self.origin
            return row.run_id != run or not row.carried or min(row.carried) > seq
        if self.course.of(row.carried):
            return False
        return row.irreversible or not spec.undo or row.status == Effect.Status.KEPT


def _told(row: Any, card: Card, plan: PlanSpec) -> Repeat:
    acting = next((action for action in card.actions if action.effect == row.step), None)
    return Repeat(
        effect=row.pk, step=row.step, action=acting.id if acting else "", titles=titles(plan, row.step, acting),
        run=row.run_id, checkpoint=min(row.carried, default=0), at=row.intended_at,
        done=row.status not in unsettled.IN_DOUBT and not row.left_open, irreversible=row.irreversible,
    )  # fmt: skip
