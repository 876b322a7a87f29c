"""A decision that passed every check, with the proposal that it would create. Writes nothing.

A decision is prepared before its recording takes the gate's row, and for a preview, which is therefore refused where
the decision would be.

It also explains why a decision came too late, and what has changed since its sender looked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User

from approvals.cards import answer as answering
from approvals.cards.action import APPROVE, is_empty
from approvals.cards.binding import Row, body_rows
from approvals.cards.card import Card, state_veil
from approvals.cards.verdicts import ActionVerdicts
from approvals.errors import (
    AlreadyDecided,
    CannotResume,
    DecisionRefused,
    EditRefused,
    GateExpired,
    GateWithdrawn,
    Invalid,
    NotAllowed,
    StaleGate,
    TokenMayNotDecide,
    make_problem,
)
from approvals.gates import preflight_facts as preflights
from approvals.gates.projection import PendingVote
from approvals.gates.reading import GateReading
from approvals.models import Gate, Proposal
from approvals.policy import authority, required
from approvals.policy.requirements import Requirements
from checkpoints import actors
from checkpoints.access import token_scope
from checkpoints.runs.plans import spec_of
from checkpoints.values import json_pointer, patch
from checkpoints.values.patch import are_same

from . import edit, edit_state, per_action
from .edit import CurrentProposal, NextProposal
from .submission import Submission, Verdict, check_form


def lost_race(reading: GateReading, seen: bytes) -> DecisionRefused | None:
    """Return the refusal of a decision on the proposal with the digest `seen`; None where it is still in time.

    Judges the gate as it was read, so read it again first.
    """
    gate, proposal = reading.gate, reading.proposal
    if gate.status == Gate.Status.WITHDRAWN:
        return GateWithdrawn(gate.outcome.words)
    if gate.status == Gate.Status.EXPIRED:
        return GateExpired()
    if gate.status == Gate.Status.DECIDED:
        outcome = gate.outcome
        return AlreadyDecided(outcome.by_name or outcome.by, outcome.get_kind_display())
    if gate.deadline and gate.deadline <= reading.now:
        return GateExpired()
    if bytes(proposal.digest) == seen:
        return None
    answered = proposal.card.label_of(proposal.content["answer"])
    return StaleGate(changes_since(gate, seen), proposal.by_name, answered)


def changes_since(gate: Gate, seen: bytes) -> list[Row]:
    """List what changed in the proposal since the version with the digest `seen`; [] for an unknown digest."""
    looked_at = gate.proposals.filter(digest=seen).first()
    return between(gate, looked_at, gate.standing()) if looked_at else []


def between(gate: Gate, looked_at: Proposal, current: Proposal) -> list[Row]:
    """List what differs between two versions of what the gate asks, with secrets masked."""
    card, rows = current.card, body_rows(looked_at.content, current.content)
    patches = [looked_at.state_patch, current.state_patch]
    if any(edit_state.beyond(card, each) for each in patches):
        before, after = (patch.apply(each, gate.saved.state) for each in patches)
        rows += [{"of": edit_state.PART, **row} for row in edit_state.rows_beyond(card, before, after)]
    return edit_state.hidden(rows, card, state_veil(spec_of(gate.run.plan), card))


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
        edit.refuse_foreign(gate, proposal, gate.saved.state, following.card.to_json(), following.answer, after)
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
