"""Turns the choices for each action so far into a proposal, so that its impact can be previewed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.contrib.auth.models import User

from approvals.cards import verdicts
from approvals.cards.action import APPROVE, EDIT, LATER, REJECT, RESPOND, Action
from approvals.decisions import per_action
from approvals.decisions.edit import CurrentProposal, NextProposal
from approvals.errors import DecisionRefused
from approvals.models import Gate, Proposal
from checkpoints import actors
from checkpoints.errors import ValueRefused

from . import verdict_choice
from .actions import TypedDecision
from .verdict_choice import ChosenVerdict


def foreseen(
    gate: Gate, standing: Proposal, each: Mapping[str, ChosenVerdict], typed: TypedDecision, *, by: User
) -> NextProposal | None:
    """Return the proposal that the choices make; None where they are no valid decision, or reject every action.

    Reasons that are still missing do not change the result, and an action without a choice stays as it is.
    """
    card = standing.card
    said = {action.id: _so_far(action, each.get(action.id, ChosenVerdict()), typed) for action in card.actions}
    with suppress(DecisionRefused):
        by_action = verdicts.read(said, card)
        if not by_action.rejects_all:
            return per_action.mixed(CurrentProposal.of(gate, standing), by_action, by=actors.of_user(by).name)
    return None


def _so_far(action: Action, chosen: ChosenVerdict, typed: TypedDecision) -> dict[str, Any]:
    wrong = any(one["action"] == action.id and not one["part"] for one in typed.errors)
    if chosen.verdict in ("", EDIT) and action.id in typed.arguments and not wrong:
        return {"verdict": EDIT, "arguments": typed.arguments[action.id]}
    if chosen.verdict == RESPOND and (chosen.response or verdict_choice.takes_text(action)):
        with suppress(ValueRefused):
            return {"verdict": RESPOND, "response": verdict_choice.response_of(action, chosen.response or "…")}
    if chosen.verdict == LATER:
        return {"verdict": LATER}
    if not chosen.sends_fields:
        return {"verdict": REJECT, "reason": chosen.reason or "…"}
    settled = action.settled.verdict if action.settled and not chosen.verdict else APPROVE
    return {"verdict": settled}
