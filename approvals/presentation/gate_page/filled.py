"""Fills in the form of a gate's page: with a refused decision, or with a draft; and picks what a draft keeps.

A draft keeps the fields of a posted form but for typed secrets, files, and fields about the form itself. A placeholder
replaces a secret; a text that is not JSON is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.contrib.auth.models import User

from approvals.cards.action import REJECT
from approvals.errors import Problem
from approvals.forms import Form, names
from approvals.forms.texts import as_json
from approvals.gates.page.shown_gate import ShownGate
from approvals.models import Draft, Gate, Proposal
from approvals.presentation.decision_form import actions, conflicts, posted, typed_edits, whole_state
from approvals.presentation.decision_form.actions import TypedDecision
from approvals.presentation.decision_form.conflicts import CONFLICT
from approvals.presentation.decision_form.posted import PostedDecision
from approvals.schema import redact
from approvals.schema.redact import Redaction, placeholder_for
from checkpoints.errors import ValueRefused
from checkpoints.values import canonical_json, json_pointer, patch

from .page import GatePage

ABOUT_THE_FORM = frozenset(
    {"csrfmiddlewaretoken", "seen", "proposal", "key", "discard", "draft_seen", "typed", "instead"}
)


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


def pick_fields(fields: Mapping[str, str], proposal: Proposal) -> dict[str, str]:
    """Return the fields of a posted form that a draft keeps; `proposal` is what it was rendered from."""
    said = {
        name: text
        for name, text in fields.items()
        if name not in ABOUT_THE_FORM and not name.startswith(posted.SHOWN) and not names.is_file(name)
    }
    _mask(said, whole_state.NAME, whole_state.veil_of(proposal.gate))
    card = proposal.card
    for choice in card.question["choices"] if card.question else ():
        veil = redact.veil(choice.get("schema") or {}, card.source)
        _mask_inputs(said, actions.answer_form(card, choice, fields), veil)
    for action in card.actions:
        if action.response_redaction:
            said.pop(f"response.{action.id}", None)  # nothing there could put a placeholder's secret back
        _mask(said, f"override.{action.id}", action.redaction)
        if action.editable:
            _mask_inputs(said, actions.form_of(action, fields), action.redaction)
    return said


def _mask_inputs(fields: dict[str, str], form: Form, veil: Redaction) -> None:
    for field in form.fields if veil else ():
        if field.kind == "secret":
            fields.pop(field.name, None)
        elif field.kind == "json":
            for name in (field.name, CONFLICT + field.name):
                _mask(fields, name, veil.at(field.pointer))


def _mask(fields: dict[str, str], name: str, veil: Redaction) -> None:
    """Replace the secrets in a JSON text by placeholders."""
    text = fields.get(name)
    if text is None or not veil:
        return
    try:
        value = canonical_json.parse_json(text)
    except ValueRefused:
        del fields[name]
        return
    typed = [place for place in veil.places(value) if not _stands(json_pointer.find_value(value, place))]
    for place in typed:
        value = patch.put(value, place, placeholder_for(place))
    fields[name] = as_json(value) if typed else text


def _stands(value: object) -> bool:
    """Tell whether a value is a placeholder, perhaps of another place, from which its item was moved."""
    return isinstance(value, str) and value.startswith(placeholder_for("/"))
