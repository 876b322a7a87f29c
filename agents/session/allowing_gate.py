"""Finds the gate that allowed an effect, and the actions and preconditions that it showed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import F, QuerySet

from approvals.cards import binding
from approvals.cards.action import Action, SettledAction
from approvals.cards.precondition import Precondition
from approvals.engine_rules import permissions
from approvals.models import Outcome
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement
from checkpoints.runs.plans import StepSpec

from . import run_path
from .run_session import RunSession


def last_outcome(session: RunSession, spec: StepSpec) -> Outcome | None:
    """Return the newest outcome on the path of a gate that could allow `spec`, or of a recovery gate that permits it.

    A recovery gate about another action than the one that `spec` would perform now does not count. Cached until the
    head moves, also between two calls of an external program.
    """
    # No withdrawn permission is used by that: nobody can change an outcome; a gate opens and is decided only while
    # nobody has the run, and a claim begins another session; a rewind or an edit moves the head. Whether a grant was
    # used, the evidence is whole and the token's owner may work on the run is read by each call.
    asked = (session.snapshot.id, spec.name, acting(session, spec))
    if asked not in session.allowing:
        steps = [spec.name, *permissions.allowing(session.plan, spec.name)]
        found = _outcomes(session.run.pk, steps, list(session.path.settled()))
        session.allowing = {asked: permissions.last_allowing(found, session.plan, spec, now=asked[2])}
    return session.allowing[asked]


@prepared_statement
def _outcomes(run: Any, steps: Any, settled: Any) -> QuerySet[Outcome]:
    found = Outcome.objects.filter(
        OneOf(F("gate__step"), steps), OneOf(F("gate__checkpoint"), settled), gate__run_id=run
    )
    return found.select_related("gate", "proposal").order_by("-gate_id")


def acting(session: RunSession, spec: StepSpec) -> str:
    """Return the id of the action that `spec` would perform now; "" if it does not choose between several."""
    return permissions.acting(session.snapshot.state.get(spec.action) if spec.action else None)


def refused(session: RunSession, spec: StepSpec) -> tuple[Action, SettledAction] | None:
    """Return the action that `spec` would perform now, and its verdict, if it was refused while the run went on.

    An answer in its place is such a verdict too. None where there is neither.
    """
    outcome = last_outcome(session, spec) if spec.guarded else None
    if outcome is None:
        return None
    actions = outcome.proposal.card.actions
    action = permissions.refused_action(outcome.kind, actions, spec, now=acting(session, spec))
    return (action, action.settled) if action is not None and action.settled is not None else None


def may_revise(session: RunSession, spec: StepSpec) -> bool:
    """Tell whether people may edit what `spec` would do, at a gate that this process can open again."""
    if not spec.guarded or not callable(getattr(session.agent, asking_gate(session, spec), None)):
        return False
    asked = Outcome.objects.filter(
        gate__run_id=session.run.pk, gate__step=asking_gate(session, spec), gate__kind="review"
    )
    outcome = asked.filter(gate__checkpoint__in=session.path.settled()).select_related("gate").order_by("-pk").first()
    return outcome is not None and any(each.edits and each.effect == spec.name for each in outcome.gate.asked.actions)


def asking_gate(session: RunSession, spec: StepSpec) -> str:
    """Return the gate step to open again for `spec`: the one that asked last on the path."""
    return permissions.asked_last(session.plan, spec.name, session.path)


def changed_by_hand(session: RunSession, spec: StepSpec, outcome: Outcome) -> dict[str, dict[str, Any]]:
    """Return the fields that people changed after an outcome, that `spec` depends on and the outcome did not bind.

    By name, each as it was before: {} or {name: value}.
    """
    loose = binding.loose_names(session.plan, gate_step=outcome.gate.step, effect=spec.name)
    changes = run_path.on(session.path.after(outcome.gate.checkpoint) or [], session.plan)
    found = permissions.changed_by_hand(changes, loose)
    return {name: {name: each.before[name]} if name in each.before else {} for name, each in found.items()}


def shown_for(session: RunSession, spec: StepSpec) -> list[Action]:
    """Return the actions that people saw when they allowed `spec`, to show them again without edits.

    These are the actions that name `spec`, or all of them where none does.
    """
    outcome = last_outcome(session, spec) if spec.guarded else None
    if outcome is None:
        return []
    actions = [action for action in outcome.proposal.card.actions if action.settled is None]
    named = [action for action in actions if action.effect == spec.name] or actions
    if spec.action:
        named = [action for action in named if action.id == acting(session, spec)]
    return [
        replace(action, edits=False, missing=(), verdicts=(), effect=spec.name if action.effect == spec.name else "")
        for action in named
    ]


def carried(session: RunSession, spec: StepSpec) -> list[Precondition]:
    """Return the preconditions under which people allowed `spec`, for a recovery gate that requires them again."""
    outcome = last_outcome(session, spec) if spec.guarded else None
    fixed = outcome.approved().guarding(spec.name) if outcome is not None else []
    return [replace(each, required=True, effects=(spec.name,)) for each in fixed]
