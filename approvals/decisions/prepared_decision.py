"""A decision that passed every check, with the proposal that it would create. Writes nothing.

A decision is prepared before its recording takes the gate's row, and for a preview, which is therefore refused where
the decision would be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User

from approvals.cards import answer as answering
from approvals.cards.action import APPROVE, is_empty
from approvals.cards.card import Card
from approvals.cards.verdicts import ActionVerdicts
from approvals.errors import CannotResume, EditRefused, Invalid, NotAllowed, TokenMayNotDecide, make_problem
from approvals.gates import preflight_facts as preflights
from approvals.gates.projection import PendingVote
from approvals.gates.reading import GateReading
from approvals.models import Gate, Proposal
from approvals.policy import authority, required
from approvals.policy.requirements import Requirements
from checkpoints import actors
from checkpoints.access import token_scope
from checkpoints.values import json_pointer, patch
from checkpoints.values.patch import are_same

from . import edit, edit_state, per_action, uploads
from .edit import CurrentProposal, NextProposal
from .lost_race import lost_race
from .submission import Submission, Verdict, check_form

UNFILLED = "Fill this in: nothing can be approved without it."
UNCHANGED = "Change this value: the agent says that it cannot go on with it as it is."


@dataclass(frozen=True, kw_only=True)
class PreparedDecision:
    """One person's decision on a gate's current proposal. `next` is None where that proposal stays."""

    gate: Gate
    proposal: Proposal
    submission: Submission
    by_action: ActionVerdicts | None
    next: NextProposal | None
    needs: Requirements  # of the current proposal
    will_need: Requirements  # of `next`, or of the current one where that stays

    @property
    def verdict(self) -> Verdict:
        """Return the verdict as which it counts."""
        if self.by_action is None:
            return Verdict(self.submission.verdict)
        return per_action.named(self.by_action) if self.next else Verdict.APPROVE

    @property
    def rejects(self) -> bool:
        return self.submission.verdict == Verdict.REJECT

    def left_after(self, ballot: PendingVote) -> int:
        """Return how many more people have to approve after it; a rejection rejects."""
        return 0 if self.rejects else ballot.after(self.will_need, anew=self.next is not None).left


def prepare(reading: GateReading, submission: Submission, *, by: User) -> PreparedDecision:
    """Check a submission against the gate as it is.

    Raises NotAllowed, TokenMayNotDecide, AlreadyDecided, StaleGate, GateExpired, GateWithdrawn, CannotResume,
    EditRefused or Invalid.
    """
    gate, proposal = reading.gate, reading.proposal
    reason = authority.reason(reading.stands, gate)
    if reason:
        raise NotAllowed(reason)
    if token_scope.by_token(by) and not gate.policy.tokens_decide:
        raise TokenMayNotDecide
    lost = lost_race(reading, submission.seen)
    if lost:
        raise lost
    found = preflights.of_gate(gate, snapshot=gate.saved)
    if found.red:
        raise CannotResume(found)
    card = proposal.card
    submission, by_action = per_action.read(submission, card)
    check_form(submission, card, gate.policy)
    following = _next(gate, proposal, submission, by_action, by)
    if submission.verdict in (Verdict.APPROVE, Verdict.EDIT, Verdict.MIXED):
        _refuse_unready(gate.asked, following.card if following else card)
    needs = will_need = required.of(proposal, gate.policy)
    if following is not None:  # what its values need, and all that the current one needs
        after = patch.apply(following.patch, gate.saved.state)
        uploads.refuse_foreign(gate, proposal, gate.saved.state, following.card.to_json(), following.answer, after)
        known = required.gate_facts(gate.run, gate.step, asked_by=gate.asked_by, attempt=gate.attempt)
        will_need = required.asked(gate.policy, following.card, known, before=needs)
    return PreparedDecision(
        gate=gate, proposal=proposal, submission=submission, by_action=by_action, next=following, needs=needs,
        will_need=will_need,
    )  # fmt: skip


def _refuse_unready(asked: Card, card: Card) -> None:
    """Raise Invalid where the approved proposal lacks what the agent needs to go on, or an action takes no approval."""
    faults = []
    for action, place in card.unfilled(asked):
        there = not is_empty(json_pointer.get(action.arguments, place))
        faults.append(make_problem(UNCHANGED if there else UNFILLED, action=action.id, pointer=place))
    for action in () if faults else card.untaken(asked):
        words = f"This action does not take {APPROVE}. Choose one of {', '.join(action.verdicts)}."
        faults.append(make_problem(words, action=action.id))
    if faults:
        raise Invalid(faults)


def _next(
    gate: Gate, proposal: Proposal, submission: Submission, by_action: ActionVerdicts | None, by: User
) -> NextProposal | None:
    """Compute the proposal that replaces the current one; None where the decision is about the current one itself."""
    body, card = proposal.content, proposal.card
    if by_action is not None:
        made = per_action.mixed(CurrentProposal.of(gate, proposal), by_action, by=actors.of_user(by).name)
        return None if are_same(made.card.to_json(), card.to_json()) else made
    if submission.verdict == Verdict.EDIT:
        if card.question is not None:
            raise Invalid([make_problem("Choose one of the answers.", pointer="/verdict")])
        made = edited(gate, proposal, arguments=submission.arguments, state=submission.state)
        # Somebody edits an action that was refused: it runs after all.
        actions = [replace(a, settled=None) if a.id in made.changed else a for a in made.card.actions]
        return replace(made, card=replace(made.card, actions=actions))
    if submission.verdict == Verdict.ANSWER:
        answer = answering.answered(card, submission.answer)
        unchanged = are_same(answer, body["answer"])
        return None if unchanged else NextProposal(card=card, answer=answer, patch=[], kind=Verdict.ANSWER)
    if submission.verdict == Verdict.APPROVE and card.question is not None and body["answer"] is None:
        raise Invalid([make_problem("Choose one of the answers.", pointer="/verdict")])
    return None


def edited(
    gate: Gate, proposal: Proposal, *, arguments: Mapping[str, Any], state: Mapping[str, Any] | None
) -> NextProposal:
    """Apply an edit to a proposal: to its actions, or to the whole state where the policy allows that.

    Raises EditRefused and Invalid.
    """
    current = CurrentProposal.of(gate, proposal)
    if state is None:
        return edit.edited(current, arguments)
    if not edit_state.taken_at(gate):
        raise EditRefused([edit_state.fault(edit_state.NOT_OFFERED)])
    return edit_state.rewritten(current, state)
