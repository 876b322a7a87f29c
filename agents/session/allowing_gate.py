"""Finds the gate that allowed an effect, and the actions and preconditions that it showed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import Q

from approvals.cards import binding
from approvals.cards.action import Action, SettledAction
from approvals.cards.precondition import Precondition
from approvals.engine_rules import gates
from approvals.models import Outcome
from checkpoints.runs.plans import StepSpec

from . import manual_changes
from .run_session import RunSession


def last_outcome(slice: RunSession, spec: StepSpec) -> Outcome | None:
    """Return the newest outcome on the path of a gate that could allow `spec`, or of a recovery gate that permits it.

    A recovery gate about another action than the one that `spec` would perform now does not count.
    """
    asked_by = Q(gate__step__in=gates.allowing(slice.plan, spec.name), gate__kind="review")
    recovered = Q(gate__step=spec.name, gate__kind="recovery", to_run__isnull=False)
    found = Outcome.objects.filter(asked_by | recovered, gate__run_id=slice.run.pk)
    found = found.filter(gate__checkpoint__in=slice.path.settled()).select_related("gate", "proposal").order_by("-pk")
    if not spec.action:
        return found.first()
    now = acting(slice, spec)
    return next((each for each in found if each.gate.kind == "review" or each.proposal.card.action(now)), None)


def acting(slice: RunSession, spec: StepSpec) -> str:
    """Return the id of the action that `spec` would perform now; "" if it does not choose between several."""
    named = slice.snapshot.state.get(spec.action) if spec.action else None
    return named if isinstance(named, str) else ""


def action_of(slice: RunSession, spec: StepSpec, outcome: Outcome) -> Action | None:
    """Return the action on the outcome's card that `spec` would perform now; None for none."""
    mine = [action for action in outcome.proposal.card.actions if action.effect == spec.name]
    if spec.action:
        return next((action for action in mine if action.id == acting(slice, spec)), None)
    return mine[0] if mine else None


def refused(slice: RunSession, spec: StepSpec) -> tuple[Action, SettledAction] | None:
    """Return the action that `spec` would perform now, and its verdict, if it was refused while the run went on.

    An answer in its place is such a verdict too. None where there is neither.
    """
    outcome = last_outcome(slice, spec) if spec.guarded else None
    if outcome is None or outcome.kind != Outcome.Kind.MIXED:
        return None
    action = action_of(slice, spec, outcome)
    return (action, action.settled) if action is not None and action.settled is not None else None


def may_revise(slice: RunSession, spec: StepSpec) -> bool:
    """Tell whether people may edit what `spec` would do, at a gate that this process can open again."""
    if not spec.guarded or not callable(getattr(slice.agent, asking_gate(slice, spec), None)):
        return False
    asked = Outcome.objects.filter(gate__run_id=slice.run.pk, gate__step=asking_gate(slice, spec), gate__kind="review")
    outcome = asked.filter(gate__checkpoint__in=slice.path.settled()).select_related("gate").order_by("-pk").first()
    return outcome is not None and any(each.edits and each.effect == spec.name for each in outcome.gate.asked.actions)


def asking_gate(slice: RunSession, spec: StepSpec) -> str:
    """Return the gate step to open again for `spec`: the one that asked last on the path."""
    return gates.asked_last(slice.plan, spec.name, slice.path)


def changed_by_hand(slice: RunSession, spec: StepSpec, outcome: Outcome) -> dict[str, dict[str, Any]]:
    """Return the fields that people changed after an outcome, that `spec` depends on and the outcome did not bind.

    By name, each as it was before: {} or {name: value}.
    """
    loose = binding.loose_names(slice.plan, gate_step=outcome.gate.step, effect=spec.name)
    found: dict[str, dict[str, Any]] = {}
    for each in manual_changes.on(slice.path.after(outcome.gate.checkpoint) or [], slice.plan):
        for name in sorted(each.fields & loose):
            found.setdefault(name, {name: each.before[name]} if name in each.before else {})
    return found


def shown_for(slice: RunSession, spec: StepSpec) -> list[Action]:
    """Return the actions that people saw when they allowed `spec`, to show them again without edits.

    These are the actions that name `spec`, or all of them where none does.
    """
    outcome = last_outcome(slice, spec) if spec.guarded else None
    if outcome is None:
        return []
    actions = [action for action in outcome.proposal.card.actions if action.settled is None]
    named = [action for action in actions if action.effect == spec.name] or actions
    if spec.action:
        named = [action for action in named if action.id == acting(slice, spec)]
    return [
        replace(action, edits=False, missing=(), verdicts=(), effect=spec.name if action.effect == spec.name else "")
        for action in named
    ]


def carried(slice: RunSession, spec: StepSpec) -> list[Precondition]:
    """Return the preconditions under which people allowed `spec`, for a recovery gate that requires them again."""
    outcome = last_outcome(slice, spec) if spec.guarded else None
    fixed = outcome.approved().guarding(spec.name) if outcome is not None else []
    return [replace(each, required=True, effects=(spec.name,)) for each in fixed]
