"""Fills in the form of a gate's page: with a refused decision, or with a draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.contrib.auth.models import User

from approvals.cards.action import REJECT
from approvals.errors import Problem
from approvals.gates.page.shown_gate import ShownGate
from approvals.models import Draft, Gate, Proposal
from approvals.presentation.decision_form import conflicts, posted, typed_edits, whole_state
from approvals.presentation.decision_form.actions import TypedDecision
from approvals.presentation.decision_form.posted import PostedDecision

from .page import GatePage


def fill(page: GatePage, sent: PostedDecision, *, problems: Sequence[Problem] = ()) -> None:
    """Put a posted decision into a page's fields, with the problems beside them."""
    page.sent, page.verdict = sent, REJECT if sent.rejects_each else sent.chosen
    page.typed = replace(sent.typed, errors=problems)


def blamed(page: GatePage, said: TypedDecision) -> TypedDecision:
    """Return `said` with only those errors that concern what would be sent."""
    if page.verdict == REJECT:
        return replace(said, errors=())
    unsent = {name for name, one in page.sent.each.items() if not one.sends_fields}
    return replace(said, errors=[each for each in said.errors if each["action"] not in unsent])


def drafted(read: ShownGate, user: User) -> GatePage:
    """Return the page with this person's draft, if any, read against the current proposal."""
    gate, draft = read.gate, read.draft
    page = GatePage(read, user)
    if draft is None or draft.empty or draft.sent:
        return page
    page.draft = draft
    looked_at = _on_screen(gate, draft)
    if looked_at is None:
        return page
    sent = posted.read_over(draft.fields, looked_at)
    if not page.may_send:
        page.unsent = typed_edits.rows(sent.typed, looked_at.card)
        return page
    fill(page, sent)
    if looked_at.pk != page.proposal.pk:
        carry(page, sent, looked_at)
    return page


def _on_screen(gate: Gate, draft: Draft) -> Proposal | None:
    """Return the version that was on the screen; None for one of a gate that was replaced, where this one is closed."""
    if draft.gate_id == gate.pk:
        return gate.proposals.filter(number=draft.proposal).first() or gate.standing()
    if gate.status != Gate.Status.OPEN:
        return None
    known = Proposal.objects.select_related("gate__run__plan", "gate__policy")
    return known.filter(gate=draft.gate_id, number=draft.proposal).first()


def carry(page: GatePage, sent: PostedDecision, looked_at: Proposal) -> None:
    """Merge texts typed over an earlier version into a page with the current one, so that none is lost."""
    texts, open_ones = conflicts.merged(sent.typed.posted, looked_at.card, page.card, sent.conflicts)
    fields = typed_edits.carried_over(texts, page.card)
    before, now = (whole_state.state_of(each) for each in (looked_at, page.proposal))
    veil = whole_state.veil_of(page.gate)
    page.typed, of_state = whole_state.carried(fields, sent.typed, veil, before=before, now=now)
    page.sent = replace(sent, conflicts={**open_ones, **of_state})


def blank(fields: Mapping[str, str], proposal: Proposal) -> bool:
    """Tell whether a form is as it was drawn, with nothing entered."""
    sent, offered = posted.read_over(fields, proposal), proposal.card.preconditions
    suggested = {each.id for each in offered if each.preselected or each.required}
    ticked = {*(sent.only_if or ()), *(each.id for each in offered if each.required)}
    entered = any(fields.get(name, "").strip() for name in ("comment", "feedback"))
    entered = entered or any(each.reason.strip() or each.response.strip() for each in sent.each.values())
    entered = entered or bool(sent.conflicts)
    return not (sent.chosen or sent.answer or sent.confirm or sent.typed.posted or entered or ticked != suggested)
