"""Finds effects that a gate would repeat and that are off its path: for lists, where no impact is computed.

An effect counts if the gate allows it again and it is not on the path to the gate; for a step that performs any call
of the agent, only the very same call counts. An impact knows more: which results would be reused. One statement, and
others only where there are such effects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import F, Q, QuerySet

from agents.models import Effect
from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.engine_rules import effects
from approvals.impact.repeats import titles
from approvals.impact.result import Repeat
from approvals.models import Gate
from approvals.models.outcome import Grant
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement
from checkpoints.runs.plans import PlanSpec, StepSpec, spec_of
from checkpoints.values.canonical_json import decode_canonical, encode_canonical

from .course import Course
from .performed_effects import LANDED_AT, LANDED_IN
from .run_row import WAY, course_of


def repeats_of(gates: Sequence[Gate]) -> dict[int, list[Repeat]]:
    """Return the repeats by gate, oldest first. Needs each gate's run."""
    cards = {gate.pk: gate.asked for gate in gates}
    done: dict[int, list[Any]] = defaultdict(list)
    for row in _rows(gates, {step for card in cards.values() for step in card.allows}):
        done[row.run.lineage].append(row)
    found = {gate.pk: done.get(gate.run.lineage, []) for gate in gates}
    asked = [gate for gate in gates if any(row.step in cards[gate.pk].allows for row in found[gate.pk])]
    ways = {run.pk: run for run in _ways(list({gate.run_id for gate in asked}))} if asked else {}
    calls = _calls(row for gate in asked for row in found[gate.pk])
    values: dict[int, list[Repeat]] = defaultdict(list)
    for gate in asked:
        run: Any = ways[gate.run_id]
        card, way, plan = cards[gate.pk], _Way(run), spec_of(run.plan)
        steps = {step.name: step for step in plan.steps if step.name in card.allows}
        for row in found[gate.pk]:
            spec = steps.get(row.step)
            if spec and way.leaves(row, spec):
                values[gate.pk] += [_repeat_of(row, action, plan) for action in _again(spec, row, card, calls)]
    return {gate: rows for gate, rows in values.items() if rows}


def _rows(gates: Sequence[Gate], steps: set[str]) -> Sequence[Any]:
    roots = {gate.run.lineage for gate in gates}
    if not roots or not steps:
        return []
    found: list[Any] = _performed(list(roots), list(steps))
    return effects.repeatable(found)


@prepared_statement
def _performed(roots: Any, steps: Any) -> QuerySet[Effect]:
    kin = Run.objects.filter(Q(OneOf(F("pk"), roots)) | Q(OneOf(F("lineage"), roots), forked_from__isnull=False))
    found = Effect.objects.filter(OneOf(F("step"), steps), run__in=kin, undoes__isnull=True).select_related("run")
    return found.annotate(carried=LANDED_IN, at=LANDED_AT).order_by("pk")


@prepared_statement
def _ways(runs: Any) -> QuerySet[Run]:
    return Run.objects.filter(OneOf(F("pk"), runs)).select_related("plan").annotate(whole=WAY)


@prepared_statement
def _given(grants: Any) -> QuerySet[Grant]:
    given = Grant.objects.filter(OneOf(F("pk"), grants)).select_related("outcome")
    return given.exclude(action="")


def _calls(rows: Iterable[Any]) -> dict[int, bytes]:
    """Map each grant to the decided arguments of its action."""
    given = list({row.grant_id for row in rows if row.grant_id})
    found = {}
    for grant in _given(given) if given else ():
        decided = decode_canonical(bytes(grant.outcome.arguments))
        if grant.action in decided:
            found[grant.pk] = encode_canonical(decided[grant.action])
    return found


def _again(spec: StepSpec, row: Any, card: Card, calls: Mapping[int, bytes]) -> Sequence[Action | None]:
    """Return the action that would repeat it, [None] for a step without one; empty if none does the same."""
    acting = [action for action in card.actions if action.effect == row.step]
    if not spec.action:
        return [next(iter(acting), None)]
    return [action for action in acting if encode_canonical(action.arguments) == calls.get(row.grant_id)][:1]


class _Way:
    """The path to a run's head, with the part before its fork."""

    def __init__(self, run: Any) -> None:
        self.course: Course = course_of(run, run.whole)
        self.origin = next(((at, seq) for number, at, seq in run.whole["turns"] if number == 1), (0, 0))

    def leaves(self, row: Any, spec: StepSpec) -> bool:
        """Tell whether the effect is off the path, and is not undone when another takes its place.

        For a step that performs any call of the agent, an effect on the path was another call than the next one.
        """
        if row.run_id != self.course.run:
            run, seq = self.origin
            return bool(spec.action) or row.run_id != run or not row.carried or min(row.carried) > seq
        if self.course.on_path(row.carried):
            return bool(spec.action)
        due = effects.left_behind(row, on_path=False)
        return not (due and effects.undoable(row, undo=spec.undo, shared=lambda: False))


def _repeat_of(row: Any, again: Action | None, plan: PlanSpec) -> Repeat:
    return Repeat(
        effect=row.pk, step=row.step, action=again.id if again else "", titles=titles(plan, row.step, again),
        run=row.run_id, checkpoint=min(row.carried, default=0), at=row.at or row.intended_at,
        done=effects.happened(row), irreversible=row.irreversible,
    )  # fmt: skip
