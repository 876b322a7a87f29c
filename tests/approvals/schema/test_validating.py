"""A schema of the agent's, asked while a decision holds its locks: it answers soon, and with faults alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from approvals.cards import answer
from approvals.cards.card import AnswerChoice, completed
from approvals.errors import CardRefused, Invalid
from approvals.schema import validate
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


@pytest.mark.parametrize("schema", [*BROKEN, DOUBLING], ids=range(6))
def test_a_schema_that_cannot_be_asked_is_one_fault_and_told_at_once(schema: dict[str, Any]) -> None:
    assert validate.faults_of(schema, "a text") == [("", str(validate.UNREADABLE))]
    assert validate.unsound(schema)


def test_no_pattern_takes_longer_than_its_text() -> None:
    for schema in (
        {"pattern": EVIL}, {"unevaluatedProperties": False, "patternProperties": {EVIL: {}}},
        {"propertyNames": {"pattern": EVIL}}, {"pattern": "("},
    ):  # fmt: skip
        assert validate.unsound(schema) == ""
        for value in (LONG, {LONG: 1}):
            assert all(said != str(validate.UNREADABLE) for _, said in validate.faults_of(schema, value))


@pytest.mark.parametrize(
    "version", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
def test_a_part_that_names_a_version_of_json_schema_is_asked_as_the_rest_is(version: str) -> None:
    """From such a part on the library's own rules were asked: a pattern that backtracks held the process up for hours,
    and references were not counted."""
    evil = {"$schema": version, "type": "string", "pattern": EVIL}
    assert validate.faults_of({"properties": {"a": evil}}, {"a": LONG}) != []
    assert validate.faults_of({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": evil}}, ["aaa"]) == []
    double = {**DOUBLING["$defs"], "a39": {**DOUBLING["$defs"]["a39"], "$schema": version}}
    assert validate.faults_of({**DOUBLING, "$defs": double}, "a text") == [("", str(validate.UNREADABLE))]


def test_what_is_unique_is_found_in_one_pass() -> None:
    many = [{"n": n} for n in range(20_000)]  # each compared with each took hours
    different: list[list[Any]] = [[1, True], [{"a": 1}, {"a": True}], [["list"], "list"], many]
    same: list[list[Any]] = [[1, 1.0], [[1], [1.0]], [{"a": 1, "b": [2]}, {"b": [2], "a": 1}]]
    assert [value for value in different if validate.faults_of({"uniqueItems": True}, value)] == []
    assert [value for value in same if not validate.faults_of({"uniqueItems": True}, value)] == []
    assert [value for value in same if validate.faults_of({"uniqueItems": False}, value)] == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"enum": [f"v{n}" for n in range(20_000)]}}, ["v19999"] * 20_000),
        ({"items": {"required": [f"r{n}" for n in range(20_000)]}}, [{}] * 20_000),
    ],
    ids=["enum", "required"],
)
def test_what_multiplies_is_not_asked_to_its_end(schema: dict[str, Any], value: Any) -> None:
    with validate.counted():
        found = validate.faults_of(schema, value)
        assert validate.used_up() or len(found) == validate.MOST
    assert not validate.used_up() or found == [("", str(validate.UNREADABLE))]


def test_what_was_asked_before_spoils_no_schema_for_those_who_come_after() -> None:
    fine = {"type": "string", "title": "of this test alone"}
    with validate.counted():
        validate.faults_of(DOUBLING, "a text")
        assert validate.used_up()
        assert validate.unsound(fine)
    assert validate.unsound(fine) == ""
    assert validate.faults_of(fine, "x") == []


def test_what_refers_to_itself_is_followed_as_deep_as_values_are() -> None:
    tree = {"type": "array", "items": {"$ref": "#"}}
    value: list[Any] = []
    for _ in range(40):
        value = [value]
    assert validate.faults_of(tree, value) == []
    for _ in range(80):
        value = [value]
    assert validate.faults_of(tree, value) == [("", str(validate.UNREADABLE))]


def test_branches_patterns_and_bounds_still_hold() -> None:
    one = {"oneOf": [{"type": "string"}, {"maxLength": 2}]}
    assert validate.faults_of(one, "abc") == validate.faults_of(one, 5) == []
    assert "more than one" in validate.faults_of(one, "a")[0][1]
    either = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert validate.faults_of(either, None) == []
    assert "not valid under any" in validate.faults_of(either, 5)[0][1]

    schema = {"type": "object", "properties": {"code": {"pattern": r"^\p{Lu}{2}$"}, "n": {"maximum": 3}}}
    assert validate.unsound(schema) == ""
    assert validate.faults_of(schema, {"code": "ÄB", "n": 3}) == []
    assert [place for place, _ in validate.faults_of(schema, {"n": 4, "code": "ab"})] == ["/code", "/n"]


def test_no_gate_opens_with_a_schema_that_cannot_be_asked() -> None:
    schema, spec = BROKEN[0], make_spec()
    [first, *_] = make_card().actions
    choice: AnswerChoice = {"id": "other", "label": "Another", "needs_value": True, "schema": schema}
    responds = make_card(actions=[replace(first, verdicts=["approve", "respond"], response=schema)])
    asks = make_card(question={"text": "Which?", "choices": [choice]})
    for card, what in ((responds, "the response of action 'refund'"), (asks, "the value of 'other'")):
        with pytest.raises(CardRefused, match=f"the schema of {what} is unsound"):
            completed(card, step=spec.step("review"), plan=spec, state=make_state())
    # One that was kept from before is refused with the answer, and breaks nothing.
    with pytest.raises(Invalid) as refused:
        answer.answered(asks, {"choice": "other", "value": "x"})
    assert [fault["pointer"] for fault in refused.value.errors] == ["/value"]
