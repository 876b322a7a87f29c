"""One gate as a reader sees it: what is asked, the conversation, the reader's rights, and the form that decides it.

The form is a sheet for each action, the choices beside them, and the faults of the typed values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.functional import cached_property

from approvals.cards.card import Card, state_veil
from approvals.consequences.done_before import DoneBefore, done_before
from approvals.consequences.errors import DoneAlready
from approvals.consequences.gate import GateImpacts
from approvals.consequences.performed import OutcomeFate, read_fates
from approvals.gates import preflight_facts as preflights
from approvals.gates import questions
from approvals.gates.page.shown_gate import ShownGate
from approvals.models import Draft, Gate, Outcome, Proposal
from approvals.policy import authority, bulk, required, second_look, separation
from approvals.policy.requirements import Requirements
from approvals.policy.second_look import SecondLook
from approvals.policy.step_up import Confirmed
from approvals.preflight import Preflight
from approvals.presentation.decision_form import actions, conflicts, faults, verdict_choice, whole_state
from approvals.presentation.decision_form.actions import TypedDecision
from approvals.presentation.decision_form.posted import NOTHING, PostedDecision, ShownPrecondition
from approvals.presentation.gate_facts import agreement, conversation, outcomes, step_up
from approvals.presentation.gate_facts.provenance import Provenance
from approvals.presentation.gate_facts.step_up import StepUp
from approvals.presentation.text import exact_call
from approvals.schema import redact
from checkpoints.runs.plans import PlanSpec, spec_of

from . import earlier
from . import receipt as receipts


@dataclass
class GateForm:
    """One gate with the form that decides it, as a reader sees it. Every part is read on first use."""

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
    needs: Requirements = field(init=False)  # of the current proposal
    seen: str = field(init=False)  # the digest *seen*, in hex, which a decision on the present proposal must carry
    outcome: Outcome | None = field(init=False)  # of a closed gate; None where it has none
    card: Card = field(init=False)  # the current proposal's, with any edit
    provenance: Provenance = field(init=False)  # the author of the card's titles and labels

    def __post_init__(self) -> None:
        self.gate, self.proposal = self.read.gate, self.read.standing
        self.open = self.gate.status == Gate.Status.OPEN
        self.needs, self.seen = required.of(self.proposal, self.gate.policy), bytes(self.proposal.digest).hex()
        self.card, self.provenance = self.proposal.card, Provenance.of(self.gate)
        self.outcome = None if self.open else getattr(self.gate, "outcome", None)

    @property
    def why_alone(self) -> str:
        """Say why this gate can only be decided by itself; "" where it may be decided together with the same."""
        return str(DoneAlready()) if self.same_done else bulk.why_alone(self.gate)

    @cached_property
    def unsupported(self) -> list[str]:
        """List sentences about the parts of those words that no argument supports."""
        return self.provenance.unsupported(self.card)

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

    @property
    def for_whom(self) -> list[User]:
        """List the people who are away, for whom the reader decides."""
        apart = separation.apart_from(self.gate)
        return [each for each in self.read.desk.lenders if apart.isdisjoint((self.user.pk, each.pk))]

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
    def second_look(self) -> SecondLook | None:
        """Return why the reader's approval needs a second look; None where it needs none."""
        if not self.may_send:
            return None
        return second_look.needed(self.read.approvals, self.card, self.needs, now=timezone.now())

    @cached_property
    def attempt(self) -> earlier.GateAttempt | None:
        """Return the number of the attempt where the same was rejected before; else None."""
        return earlier.rejection(self.gate, reader=self.user, heard=self.read.sees_run)

    @cached_property
    def done_before(self) -> list[DoneBefore]:
        """List what other runs did that is like what is asked for; [] once the gate is closed."""
        return done_before([self.gate], reader=self.user, cards={self.gate.pk: self.card}).get(self.gate.pk, [])

    @property
    def done_words(self) -> list[tuple[int, str]]:
        """List (gate, what was done under it), the gate 0 where the reader may not see it."""
        resource, outside = self.card.resource, self.provenance.outside
        done = self.done_before if self.open else ()
        return [(each.gate, earlier.say_done(each, resource, outside=outside)) for each in done]

    @property
    def same_done(self) -> bool:
        """Tell whether the same was done lately, so that this is decided by itself."""
        return any(each.lately for each in self.done_before)

    @cached_property
    def changed_before(self) -> list[str]:
        """List sentences: who changed the run before this was asked, and what."""
        return earlier.changes(self.gate)

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

    @cached_property
    def standing_state(self) -> dict[str, Any] | None:
        """Return the saved state with any edit in the current proposal; None where whole-state edits are off."""
        return whole_state.state_of(self.proposal) if whole_state.allowed(self.gate, self.card) else None

    @cached_property
    def whole(self) -> whole_state.WholeStateArea | None:
        """Return the text area of the whole state, where the reader may edit it here."""
        if not self.may_send or self.ballots or self.standing_state is None:
            return None
        return whole_state.drawn(self.standing_state, self.typed, self.veil)

    @cached_property
    def sheets(self) -> list[actions.ActionSheet]:
        read_only = not self.may_send or self.card.question is not None
        judged = outcomes.judged(self.outcome) if self.outcome else ()
        return actions.sheets(
            self.card, typed=self.typed, before=self.gate.asked, read_only=read_only, provenance=self.provenance,
            ballots=self.ballots, judged={each.action.id: each for each in judged},
        )  # fmt: skip

    @cached_property
    def ballots(self) -> dict[str, verdict_choice.Ballot]:
        """Return each action's own choice; {} where one choice covers all, or the reader may not decide."""
        if not self.may_send or not verdict_choice.has_ballots(self.card):
            return {}
        chosen, errors = self.sent.each, self.typed.errors
        return {each.id: verdict_choice.ballot(each, chosen.get(each.id), errors) for each in self.card.actions}

    @cached_property
    def conflicts(self) -> list[conflicts.ShownConflict]:
        """List what the reader typed over an earlier version where others changed the same."""
        if not self.may_send or not self.sent.conflicts:
            return []
        state, found = self.standing_state or {}, self.sent.conflicts
        of_state = [(name, each) for name, each in found.items() if conflicts.is_of_state(name)]
        whole = [whole_state.conflict_shown(name, each, state, self.veil) for name, each in of_state]
        return [*conflicts.shown(found, self.sheets), *whole]

    @property
    def can_edit(self) -> bool:
        return any(sheet.form for sheet in self.sheets) or bool(self.whole and self.whole.text is not None)

    @property
    def first_input(self) -> str:
        """Return the id of the first field that can be edited."""
        return next(
            (each.id for sheet in self.sheets for each in sheet.fields if each.open),
            "whole-state" if self.whole else "decide",
        )

    @cached_property
    def missing(self) -> list[str]:
        """List the labels of required values that nobody has filled in yet."""
        sheets = {sheet.action.id: sheet for sheet in self.sheets}
        return [sheets[action.id].label_of(place) for action, place in self.card.unfilled(self.gate.asked)]

    @property
    def asks_only(self) -> bool:
        """Tell whether nothing is proposed, and every action only asks for what is missing."""
        return all(sheet.action.asks_only for sheet in self.sheets)

    @property
    def offers_approve(self) -> bool:
        """Tell whether the proposal may be approved unchanged."""
        return self.may_approve and not self.missing

    @property
    def chosen_verdict(self) -> str:
        return self.verdict or ("edit" if self.missing and not self.ballots else "")

    @cached_property
    def loose_errors(self) -> list[str]:
        """List errors that belong to no action and are shown beside no field."""
        known = {action.id for action in self.card.actions}
        loose = [each for each in self.typed.errors if each["action"] not in known]
        return [each["message"] for each in loose if each["message"] not in self.rejection_errors.values()]

    @property
    def rejection_errors(self) -> dict[str, str]:
        """Return the faults of a rejection's own fields, `comment` and `then`."""
        if self.verdict != "reject":
            return {}
        mine = [each for each in self.typed.errors if each["pointer"] in faults.OF_REJECTION and not each["action"]]
        return {each["pointer"].removeprefix("/"): each["message"] for each in mine}

    @cached_property
    def faults(self) -> list[faults.FormFault]:
        """List the faults of the typed values."""
        rejects = self.verdict == "reject"
        return faults.faults(self.sheets, self.answers, self.typed, rejects=rejects) if self.typed.errors else []

    @cached_property
    def answers(self) -> list[actions.AnswerForm]:
        return actions.answers(self.card, typed=self.typed, quoted=self.provenance.outside)

    @cached_property
    def overridable(self) -> list[actions.ActionSheet]:
        """List the sheets whose arguments may be replaced as JSON, with the typed JSON and its faults."""
        errors = self.typed.errors if self.sent.then == "override" else ()
        return [
            replace(
                sheet,
                value_text=self.sent.override.get(sheet.action.id, sheet.value_text),
                errors=[each["message"] for each in errors if each["action"] == sheet.action.id],
            )
            for sheet in self.sheets
            if sheet.value_text
        ]
