"""A recovery gate on the page: what its form starts from, and what it says once it is answered."""

from __future__ import annotations

import re
from typing import Any

from approvals.cards.card import AnswerChoice, Card
from approvals.presentation.decision_form import answer_forms
from approvals.presentation.decision_form.actions import TypedDecision
from tests.approvals.forms import posted_forms
from tests.factories import ann, make_gate, make_team
from tests.harness.signed_in_clients import form_of, post, signed_in

PAYMENT = {"type": "object", "properties": {"id": {"type": "string"}, "amount": {"type": "string"}}, "required": ["id"]}


def inputs(payment: dict[str, Any]) -> dict[str, str]:
    """The inputs, by name, that ask for what a payment returned, and what stands in them."""
    schema: dict[str, Any] = {"type": "object", "properties": {"payment": payment}, "$defs": {"Payment": PAYMENT}}
    choice: AnswerChoice = {"id": "happened", "label": "It happened", "needs_value": True, "schema": schema}
    card = Card(title="Did it?", question={"text": "Did it?", "choices": [choice]})
    (offered,) = answer_forms.answers(card, typed=TypedDecision())
    assert offered.form is not None
    return {name: text for name, text in posted_forms.as_posted(offered.form).items() if "!page" not in name}


def test_a_result_that_is_an_object_is_asked_for_field_by_field() -> None:
    assert inputs({"$ref": "#/$defs/Payment"}) == {"value.happened/payment/id": "", "value.happened/payment/amount": ""}


def test_a_default_is_where_the_form_starts_from() -> None:
    nothing = {"anyOf": [{"$ref": "#/$defs/Payment"}, {"type": "null"}], "default": None}
    assert inputs(nothing) == {"value.happened!branch/payment": "none"}


def test_a_gate_that_was_answered_says_with_what() -> None:
    team = make_team()
    gate, reviewer = make_gate(team=team, kind="recovery"), ann(team)
    assert post(reviewer, gate, form_of(gate, "answer", answer="not_happened")).status_code == 303
    page = signed_in(reviewer).get(f"/gates/{gate.pk}/").content.decode()
    assert re.search(r"“(<[^>]+>)?It did not<", page)


def test_nothing_was_proposed_of_what_an_answer_asks_for() -> None:
    """The empty fields of "It happened" were said to be as proposed."""
    team = make_team()
    schema: dict[str, Any] = {"type": "object", "properties": {"payment": PAYMENT}}
    choice: AnswerChoice = {"id": "happened", "label": "It happened", "needs_value": True, "schema": schema}
    card = Card(title="Did it?", question={"text": "Did it?", "choices": [choice]})
    gate = make_gate(team=team, kind="recovery", card=card)
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert 'name="value.happened/payment/id"' in page
    assert "as proposed" not in page
