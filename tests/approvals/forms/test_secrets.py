"""What is hidden as a secret: what the plan says, and nothing that a card alone says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from approvals.cards.card import completed
from approvals.forms import FormField
from approvals.presentation.decision_form import actions
from approvals.presentation.decision_form.actions import ActionSheet
from tests.factories import make_card, make_spec, make_state

HIDDEN: dict[str, Any] = {"type": "string", "writeOnly": True}
CARDS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"amount": HIDDEN}},
    {"type": "object", "properties": {"amount": {"type": "string", "format": "password"}}},
    {"type": "object", "properties": {"amount": {"$ref": "#/$defs/A"}}, "$defs": {"A": HIDDEN}},
    {"type": "object", "properties": {"amount": {"$ref": "#/default/x"}}, "default": {"x": HIDDEN}},
    {"type": "object", "properties": {"amount": {"$ref": "#/properties/reply"}, "reply": HIDDEN}},
    {"type": "object", "properties": {"amount": {"anyOf": [HIDDEN, {"type": "null"}]}}},
    {"type": "object", "properties": {"amount": {"allOf": [HIDDEN]}}},
]


def sheet(schema: dict[str, Any], plan: dict[str, Any], **more: Any) -> ActionSheet:
    """The one action of a gate of a plan whose state has this schema."""
    [first, *_] = make_card().actions
    asked = make_card(actions=[replace(first, schema=schema, **more)])
    spec = replace(make_spec(), state_schema=plan)
    card = completed(asked, step=spec.step("review"), plan=spec, state=make_state())
    return actions.sheets(card)[0]


def of_proposal(schema: dict[str, Any]) -> dict[str, Any]:
    """A state's schema, of which only the proposal is said."""
    return {"type": "object", "properties": {"proposal": schema}}


@pytest.mark.parametrize("schema", CARDS, ids=str)
def test_a_card_hides_nothing_that_the_plan_shows(schema: dict[str, Any]) -> None:
    plain = {"type": "object", "properties": {"amount": {"type": "string"}, "reply": HIDDEN}}
    [amount] = [each for each in sheet(schema, of_proposal(plain)).fields if each.label == "Amount"]
    assert (amount.kind, amount.text) == ("text", "120.00")


def test_what_the_plan_hides_stays_hidden_with_a_schema_of_the_card_and_without() -> None:
    plan = of_proposal(CARDS[0])
    for schema in ({}, *CARDS[:2]):
        [amount] = [each for each in sheet(schema, plan).fields if each.label == "Amount"]
        assert (amount.kind, amount.text, amount.value) == ("secret", "", "120.00")


def test_an_action_without_a_place_in_the_state_hides_nothing() -> None:
    [amount] = sheet(CARDS[0], {}, pointer="", pinned=(), arguments={"amount": "120.00"}).values
    assert isinstance(amount, FormField)
    assert (amount.kind, amount.text) == ("text", "120.00")
