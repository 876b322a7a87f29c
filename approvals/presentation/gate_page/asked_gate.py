"""One gate as a reader sees it: the proposal, the conversation, the reader's rights, and what is typed so far."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.functional import cached_property

from approvals.cards.card import Card, state_veil
from approvals.consequences.done_before import DoneBefore, done_before
from approvals.consequences.errors import DoneAlready
from approvals.consequences.gate import GateImpacts
from approvals.consequences.outcome_fates import OutcomeFate, read_fates
from approvals.gates import preflight_facts as preflights
from approvals.gates import questions
from approvals.gates.beside import OpenBeside
from approvals.gates.page.shown_gate import ShownGate
from approvals.models import Draft, Gate, Outcome, Proposal
from approvals.policy import authority, bulk, required, second_look, separation
from approvals.policy.requirements import Requirements
from approvals.policy.second_look import Streak
from approvals.policy.step_up import Confirmed
from approvals.preflight import Preflight
from approvals.presentation.decision_form.actions import TypedDecision
from approvals.presentation.decision_form.posted import NOTHING, PostedDecision
from approvals.presentation.gate_facts import (
    agreement,
    attempts,
    authors,
    conversation,
    outcomes,
    step_up,
)
from approvals.presentation.gate_facts.preconditions import ShownPrecondition
from approvals.presentation.gate_facts.provenance import Provenance
from approvals.presentation.gate_facts.step_up import StepUp
from approvals.presentation.text import exact_call
from approvals.schema import redact
from checkpoints import store
from checkpoints.runs.plans import PlanSpec, spec_of

from . import receipt as receipts
from .done_words import say_done


@dataclass
class AskedGate:
    """One gate as a reader sees it. Every part is read on first use."""

    read: ShownGate
    user: User
    typed: TypedDecision = field(default_factory=TypedDecision)
    instead: TypedDecision = field(default_factory=TypedDecision)  # typed values that replace proposed ones
    sent: PostedDecision = NOTHING  # what the form is filled in with
    verdict: str = ""  # the choice that is selected when the page opens
    unconfirmed: Collection[int] = ()  # ids of effects whose repeat was not confirmed
    unconfirmed_at: str = ""  # the choice that was sent then
    draft: Draft | None = None  # the reader's own, which the fields hold
    typed_at: str = ""  # the browser's count of its inputs, by which it knows which one this answers
    unsent: Sequence[dict[str, Any]] = ()  # rows of the draft's changes, where it can no longer be sent
    unsaid: str = ""  # words for the conversation that were refused
    confirmed: Confirmed | None = None  # how the reader confirmed who they are
    unlooked: bool = False  # the decision came without the second look that was required

    gate: Gate = field(init=False)
    proposal: Proposal = field(init=False)
    open: bool = field(init=False)
    outcome: Outcome | None = field(init=False)  # of a closed gate; None where it has none
    provenance: Provenance = field(init=False)  # the author of the card's titles and labels

    def __post_init__(self) -> None:
        self.gate, self.proposal = self.read.gate, self.read.standing
        self.open = self.gate.status == Gate.Status.OPEN
        self.provenance = Provenance.of(self.gate)
        self.outcome = None if self.open else getattr(self.gate, "outcome", None)

    @cached_property
    def card(self) -> Card:
        """Return the current proposal's card, with any edit."""
        return self.proposal.card

    @property
    def the_same(self) -> list[OpenBeside]:
        """List the other open gates that ask for exactly the same."""
        return [each for each in self.read.beside if each.same]

    @property
    def why_alone(self) -> str:
        """Say why this gate can only be decided by itself; "" where it may be decided together with the same."""
        return str(DoneAlready()) if self.same_done else bulk.why_alone(self.gate)

    @property
    def about_the_same(self) -> list[OpenBeside]:
        """List the other open gates about the same resource."""
        return [each for each in self.read.beside if not each.same]

    @cached_property
    def unsupported(self) -> list[str]:
        """List sentences about the parts of those words that no argument supports."""
        return self.provenance.unsupported(self.card)

    @property
    def risk_mark(self) -> str:
        """Say who set the risk; "" where this server's plan did."""
        return self.provenance.risk_mark(self.card)

    @property
    def reasons_mark(self) -> str:
        """Say who gave the reasons for the risk; "" where this server's plan did."""
        return self.provenance.reasons_mark(self.card)

    @cached_property
    def calls(self) -> list[exact_call.ExactCall]:
        """List the calls that would run, by their real names, where the titles are an external program's; else []."""
        running = [action for action in self.card.actions if action.settled is None]
        return [exact_call.call(action) for action in running] if self.provenance.outside else []

    @property
    def answered(self) -> str:
        """Return the label of the answer that others have approved so far."""
        return self.card.label_of(self.proposal.content["answer"])

    @cached_property
    def plan(self) -> PlanSpec:
        return spec_of(preflights.plan_of(self.gate, self.gate.saved))

    @cached_property
    def veil(self) -> redact.Redaction:
        """Return the veil over the state's secrets."""
        return state_veil(self.plan, self.card)

    @cached_property
    def goes_on(self) -> bool:
        """Tell whether the run goes on while this gate is open."""
        plan = spec_of(self.gate.run.plan)
        return plan.goes_on_asking and not plan.step(self.gate.step).waits and self.card.reopened is None

    @cached_property
    def why_not(self) -> str:
        """Say why the reader may not decide; "" where they may."""
        if not self.open:
            return "This gate is closed."
        return authority.reason(self.read.stands, self.gate) or self.agreement.turn

    @cached_property
    def needs(self) -> Requirements:
        """Return what the current proposal needs."""
        return required.of(self.proposal, self.gate.policy)

    @property
    def for_whom(self) -> list[User]:
        """List the people who are away, for whom the reader decides."""
        apart = separation.apart_from(self.gate)
        return [each for each in self.read.desk.lenders if apart.isdisjoint((self.user.pk, each.pk))]

    @property
    def holds(self) -> bool:
        """Tell whether the gate's claim is the reader's."""
        claim = self.read.desk.claim
        return claim is not None and claim.by.pk == self.user.pk

    @property
    def may_decide(self) -> bool:
        return not self.why_not

    @cached_property
    def preflight(self) -> Preflight | None:
        """Return the preflight: whether the run can go on from here; None where the gate is closed."""
        return preflights.of_gate(self.gate, snapshot=self.gate.saved) if self.open else None

    @cached_property
    def may_send(self) -> bool:
        """Tell whether a decision by the reader would be accepted now."""
        return self.may_decide and not (self.preflight and self.preflight.red)

    @cached_property
    def step_up(self) -> StepUp | None:
        """Return the state of the reader's confirmation of who they are; None where the policy needs none."""
        method = self.gate.policy.step_up_method
        return step_up.asked(self.user, self.confirmed, method) if self.needs.step_up else None

    @cached_property
    def second_look(self) -> Streak | None:
        """Return the streak of approvals after which the reader's next one needs a second look.

        An empty one where the policy's rule asks for it.
        """
        if not self.may_send:
            return None
        streak = second_look.streak(self.read.approvals, now=timezone.now())
        return streak or (Streak(0, 0) if self.needs.second_look else None)

    @cached_property
    def attempt(self) -> attempts.GateAttempt | None:
        """Return the number of the attempt where the same was rejected before; else None."""
        return attempts.of_gate(self.gate, reader=self.user, heard=self.read.sees_run)

    @cached_property
    def done_before(self) -> list[DoneBefore]:
        """List what other runs did that is like what is asked for; [] once the gate is closed."""
        return done_before([self.gate], reader=self.user, cards={self.gate.pk: self.card}).get(self.gate.pk, [])

    @property
    def done_words(self) -> list[tuple[int, str]]:
        """List (gate, what was done under it), the gate 0 where the reader may not see it."""
        resource, outside = self.card.resource, self.provenance.outside
        done = self.done_before if self.open else ()
        return [(each.gate, say_done(each, resource, outside=outside)) for each in done]

    @property
    def same_done(self) -> bool:
        """Tell whether the same was done lately, so that this is decided by itself."""
        return any(each.lately for each in self.done_before)

    @cached_property
    def changed_before(self) -> list[str]:
        """List sentences: who changed the run before this was asked, and what."""
        return authors.changes(self.gate)

    @property
    def may_approve(self) -> bool:
        """Tell whether the reader's approval is needed, and not given yet; without it they can still edit or reject."""
        return not self.agreement.unneeded and (self.agreement.mine is None or self.agreement.mine.rejects)

    @cached_property
    def agreement(self) -> agreement.Agreement:
        return agreement.agreement(self.gate, self.proposal, user=self.user, deciders=self.read.deciders)

    @property
    def draft_is_older(self) -> bool:
        """Tell whether the draft was typed over an earlier version, or at a gate that this one replaces."""
        draft = self.draft
        return draft is not None and (draft.gate_id, draft.proposal) != (self.gate.pk, self.gate.proposal)

    @property
    def unsent_words(self) -> str:
        """Return the draft's comment, or its feedback to the agent."""
        fields = self.draft.fields if self.draft else {}
        return fields.get("comment") or fields.get("feedback") or ""

    @cached_property
    def conversation(self) -> conversation.Conversation:
        return conversation.conversation(self.gate, user=self.user, earlier=self.read.sees_run)

    @cached_property
    def unaskable(self) -> str:
        """Say why the agent takes no questions here; "" where it does."""
        return str(questions.why_not(self.gate))

    @cached_property
    def fate(self) -> OutcomeFate:
        """Return what became of the outcome; an empty one while the gate is open."""
        return read_fates([self.gate], results=self.read.sees_run).get(self.gate.pk, OutcomeFate())

    @cached_property
    def ended(self) -> outcomes.GateEnding | None:
        return None if self.open else outcomes.ended(self.gate, spec_of(self.gate.run.plan), fate=self.fate)

    @cached_property
    def receipt(self) -> receipts.GateReceipt | None:
        """Return what became of the decision; None while the gate is open."""
        plan, ended = spec_of(self.gate.run.plan), self.ended
        if ended is None:
            return None
        veil, seen = state_veil(plan, self.card), self.read
        return receipts.of_gate(self.gate, ended, plan, veil, fate=self.fate, sees_run=seen.sees_run, late=seen.late)

    @cached_property
    def preconditions(self) -> list[ShownPrecondition]:
        """List all preconditions, and whether each counts."""
        ticked, counted = self.sent.only_if, self.outcome.counted if self.outcome else ()
        return [
            ShownPrecondition(
                precondition=each,
                ticked=each.required or (each.preselected if ticked is None else each.id in ticked),
                effects=tuple(each.effects) or tuple(self.card.allows),
                counts=each.id in counted,
            )
            for each in self.card.preconditions
        ]

    @cached_property
    def future(self) -> GateImpacts:
        return GateImpacts(self.gate, self.card, self.proposal.state_patch)

    def read_ahead(self) -> None:
        """Read the history for the impacts before the shown state, since both need the same rows."""
        if self.open:
            store.expect([self.gate.checkpoint])
            _ = self.future.history

    @property
    def seen(self) -> str:
        """Return the digest *seen*, in hex, which a decision on the present proposal must carry."""
        return bytes(self.proposal.digest).hex()
