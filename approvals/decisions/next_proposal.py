"""The proposal that a decision would create. Writes nothing.

Recording a decision computes it before taking the gate's row, and so does the preview of what a decision would do: a
preview is refused where the decision would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.cards import answer as answering
from approvals.cards.action import editable, is_empty
from approvals.cards.card import Card
from approvals.cards.verdicts import ActionVerdicts
from approvals.errors import CannotResume, EditRefused, Invalid, NotAllowed, problem
from approvals.gates import preflight_facts as preflights
from approvals.gates.reading import GateReading
from approvals.models import Gate, Proposal
from approvals.policy import authority
from checkpoints import actors
from checkpoints.runs.plans import spec_of
from checkpoints.values import json_pointer, patch
from checkpoints.values.patch import same

from . import edit, edit_state, per_action, uploads
from .edit import NextProposal
from .lost_race import lost_race
from .submission import Submission, Verdict, check_form

UNFILLED = gettext_lazy("Fill this in: nothing can be approved without it.")
UNCHANGED = gettext_lazy("Change this value: the agent says that it cannot go on with it as it is.")


def put(
    reading: GateReading, *, by: User, said: Submission
) -> tuple[Submission, ActionVerdicts | None, NextProposal | None]:
    """Return (submission, decision by action or None, next proposal or None where the decision keeps the current one).

    Raises NotAllowed, AlreadyDecided, StaleGate, GateExpired, GateWithdrawn, CannotResume, EditRefused or Invalid.
    """
    gate, standing = reading.gate, reading.standing
    reason = authority.why_not(by, gate)
    if reason:
        raise NotAllowed(reason)
    lost = lost_race(gate, said.seen, standing, reading.now)
    if lost:
        raise lost
    found = preflights.of_gate(gate, snapshot=gate.saved)
    if found.red:
        raise CannotResume(found)
    said, word = per_action.heard(said, standing.card)
    check_form(said, standing.card, gate.policy)
    following = _instead(gate, standing, said, word, by)
    if said.verdict in (Verdict.APPROVE, Verdict.EDIT, Verdict.MIXED):
        _refuse_unfilled(gate.asked, following.card if following else standing.card)
    if following is not None:
        after = patch.apply(following.patch, gate.saved.state)
        uploads.refuse_foreign(gate, standing, gate.saved.state, following.card.to_json(), following.answer, after)
    return said, word, following


def _refuse_unfilled(asked: Card, card: Card) -> None:
    """Raise Invalid where the proposal agreed to would lack what the agent cannot go on without."""
    faults = []
    for action, place in card.unfilled(asked):
        there = json_pointer.has(action.arguments, place) and not is_empty(json_pointer.find(action.arguments, place))
        faults.append(problem(UNCHANGED if there else UNFILLED, action=action.id, pointer=place))
    if faults:
        raise Invalid(faults)


def _instead(
    gate: Gate, standing: Proposal, said: Submission, word: ActionVerdicts | None, by: User
) -> NextProposal | None:
    """Compute the proposal that replaces the current one; None where the decision is about the current one itself."""
    body, card = standing.content, standing.card
    if word is not None:
        made = per_action.mixed(
            card, word, plan=gate.run.plan, step=gate.step, saved=gate.saved.state, standing=standing.state_patch,
            by=actors.of_user(by).name,
        )  # fmt: skip
        return None if same(made.card.to_json(), card.to_json()) else made
    if said.verdict == Verdict.EDIT:
        if card.question is not None:
            raise Invalid([problem(_("Choose one of the answers."), pointer="/verdict")])
        edit = _edited(gate, standing, said)
        return replace(edit, card=_revived(edit.card, edit.changed))
    if said.verdict == Verdict.ANSWER:
        answer = answering.answered(card, said.answer)
        return (
            None
            if same(answer, body["answer"])
            else NextProposal(card=card, answer=answer, patch=[], kind=Verdict.ANSWER)
        )
    if said.verdict == Verdict.APPROVE and card.question is not None and body["answer"] is None:
        raise Invalid([problem(_("Choose one of the answers."), pointer="/verdict")])
    return None


def _edited(gate: Gate, standing: Proposal, said: Submission) -> NextProposal:
    """Apply an edit to the current proposal: to its actions, or to the whole state where the policy allows that."""
    over: dict[str, Any] = {
        "plan": gate.run.plan, "step": gate.step, "saved": gate.saved.state, "standing": standing.state_patch,
    }  # fmt: skip
    if said.state is None:
        offered = editable(spec_of(gate.run.plan).step(gate.step))
        return edit.edited(standing.card, arguments=said.arguments, offered=offered, **over)
    if not gate.policy.whole_state:
        raise EditRefused([edit_state.fault(edit_state.NOT_OFFERED)])
    return edit_state.rewritten(standing.card, wanted=said.state, **over)


def _revived(card: Card, changed: Sequence[str]) -> Card:
    """Clear the refusal of an action that somebody edits: it runs after all."""
    return replace(card, actions=[replace(a, settled=None) if a.id in changed else a for a in card.actions])
