"""A schema of the agent's, asked while a decision holds its locks: it answers soon, and with faults alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from approvals import answering, holding, verdicts
from approvals.cards import Card, Choice, completed
from approvals.errors import CardRefused, Invalid
from tests.factories import make_card, make_spec, make_state

BROKEN: list[dict[str, Any]] = [
    {"$ref": "#"},
    {"type": 5},
    {"minLength": "x"},
    {"$ref": "https://elsewhere.example/schema.json"},
    {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
]
DOUBLING: dict[str, Any] = {
    "$ref": "#/$defs/a0",
    "$defs": {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)} | {"a40": {}},
}
EVIL = "^(a+)+$"
LONG = "a" * 60 + "!"


@pytest.mark.parametrize("schema", [*BROKEN, DOUBLING], ids=str)
def test_a_schema_that_cannot_be_asked_is_one_fault_and_told_at_once(schema: dict[str, Any]) -> None:
    assert holding.faults_of(schema, "a text") == [("", holding.UNREADABLE)]
    assert holding.unsound(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": EVIL},
        {"additionalProperties": False, "patternProperties": {EVIL: {}}},
        {"unevaluatedProperties": False, "patternProperties": {EVIL: {}}},
        {"propertyNames": {"pattern": EVIL}},
        {"pattern": "("},
        {"pattern": "^(?=a)"},
    ],
    ids=str,
)
def test_no_pattern_takes_longer_than_its_text(schema: dict[str, Any]) -> None:
    assert holding.unsound(schema) == ""
    for value in (LONG, {LONG: 1}):
        assert all(said != holding.UNREADABLE for _, said in holding.faults_of(schema, value))


def test_patterns_and_bounds_still_hold() -> None:
    schema = {"type": "object", "properties": {"code": {"pattern": r"^\p{Lu}{2}$"}, "n": {"maximum": 3}}}
    assert holding.unsound(schema) == ""
    assert holding.faults_of(schema, {"code": "ÄB", "n": 3}) == []
    assert [place for place, _ in holding.faults_of(schema, {"n": 4, "code": "ab"})] == ["/code", "/n"]


def asked_with(**action: Any) -> Card:
    """A card whose one action takes a response."""
    spec = make_spec()
    [first, *_] = make_card().actions
    card = make_card(actions=[replace(first, verdicts=["approve", "respond"], **action)])
    return completed(card, step=spec.step("review"), plan=spec, state=make_state())


@pytest.mark.parametrize("schema", BROKEN, ids=str)
def test_no_gate_opens_with_a_schema_that_cannot_be_asked(schema: dict[str, Any]) -> None:
    with pytest.raises(CardRefused, match="the schema of the response of action 'refund' is unsound"):
        asked_with(response=schema)
    choice: Choice = {"id": "other", "label": "Another", "needs_value": True, "schema": schema}
    spec = make_spec()
    card = make_card(question={"text": "Which?", "choices": [choice]})
    with pytest.raises(CardRefused, match="the schema of the value of 'other' is unsound"):
        completed(card, step=spec.step("review"), plan=spec, state=make_state())


@pytest.mark.parametrize("schema", BROKEN, ids=str)
def test_an_answer_under_a_schema_kept_from_before_is_refused_and_breaks_nothing(schema: dict[str, Any]) -> None:
    choice: Choice = {"id": "other", "label": "Another", "needs_value": True, "schema": schema}
    card = Card(title="Which?", question={"text": "Which?", "choices": [choice]})
    with pytest.raises(Invalid) as refused:
        answering.answered(card, {"choice": "other", "value": "x"})
    assert [fault["pointer"] for fault in refused.value.errors] == ["/value"]


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"pattern": EVIL}], ids=str)
def test_a_response_under_such_a_schema_is_refused_by_one_fault(schema: dict[str, Any]) -> None:
    card = asked_with(response={"type": "string"})
    kept = replace(card, actions=[replace(each, response=schema) for each in card.actions])
    with pytest.raises(Invalid) as refused:
        verdicts.read({"refund": {"verdict": "respond", "response": LONG}}, kept)
    assert [(fault["action"], fault["part"]) for fault in refused.value.errors] == [("refund", "response")]
