"""A gate that is opened again for the sake of one effect: what of the earlier decision holds, whatever is decided now.

The run goes on with that effect afterwards. What was refused and passed by before it does not run any more, and what
was done stays done: a verdict that pretended otherwise would not be kept. To change either, send the run
back.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from agents.models import Effect
from agents.session.run_session import RunSession
from approvals.cards.action import APPROVE, EDIT, Action, editable
from approvals.cards.card import Card
from approvals.models import Outcome
from checkpoints.runs.plans import StepSpec
from checkpoints.values import json_pointer
from checkpoints.values.checkpoint_kinds import GATE_PASSED, OUTPUT_LANDED
from checkpoints.values.patch import are_same


def carried_over(session: RunSession, spec: StepSpec, card: Card, before: Outcome) -> Card:
    """Return the card with what `before` refused, and no way to refuse what was done since the gate first closed."""
    done = _done_since(session, spec)
    return replace(card, actions=[_carried(session, spec, action, before, done) for action in card.actions])


def _carried(session: RunSession, spec: StepSpec, action: Action, before: Outcome, done: dict[UUID, str]) -> Action:
    was, settled = before.proposal.card.action(action.id), before.refused(action.id)
    if was is not None and settled is not None and _as_it_was(session, action, was):
        return replace(action, settled=settled, verdicts=[settled.verdict])
    if not _is_done(session, action, done):
        return action
    offered = action.edits and EDIT in (action.verdicts or [EDIT]) and bool(action.pointer)
    edits = offered and any(json_pointer.overlaps(place, action.pointer) for place in editable(spec))
    return replace(action, verdicts=[APPROVE, *[EDIT] * edits])


def _as_it_was(session: RunSession, action: Action, was: Action) -> bool:
    """Tell whether what was refused is what is asked about now."""
    state = session.snapshot.state
    if (action.effect, action.pointer) != (was.effect, was.pointer):
        return False
    return not action.pointer or (
        json_pointer.has_value(state, action.pointer)
        and are_same(json_pointer.find_value(state, action.pointer), was.arguments)
    )


def _is_done(session: RunSession, action: Action, done: dict[UUID, str]) -> bool:
    performing = next((step for step in session.plan.steps if step.name == action.effect), None)
    if performing is None or performing.name not in done.values():
        return False
    if not performing.action:
        return True
    return Effect.objects.landed_for(action.id, step=performing.name, runs=session.path.runs, at=list(done))


def _done_since(session: RunSession, spec: StepSpec) -> dict[UUID, str]:
    """Map checkpoint -> step of what was executed between the gate's closing and its first reopening."""
    found: dict[UUID, str] = {}
    places = session.path.places
    for at in range(len(places) - 1, -1, -1):
        place = places[at]
        if place.step == spec.name and place.kind in GATE_PASSED:
            if at == 0 or places[at - 1].kind != "reopen":
                break
        elif place.kind in OUTPUT_LANDED:
            found[place.id] = place.step
    return found
