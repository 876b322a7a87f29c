"""A form from a schema: what comes back as it was shown changes nothing, and what was typed is read by kind.

The schema is the agent's word: whatever it holds, a form is drawn, small, and hides nothing that the plan shows.
"""

from __future__ import annotations

import datetime as dt
import enum
import json
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from approvals.cards.card import completed
from approvals.forms import MISSING, Form, FormField, build, names, words
from approvals.forms import FormField as Input
from approvals.forms.merging import is_as_rendered, rendered
from approvals.presentation.decision_form import actions
from approvals.presentation.decision_form.actions import ActionSheet
from approvals.schema.walk import resolve_part, schema_at
from tests.approvals.forms.posted_forms import as_posted
from tests.factories import make_card, make_spec, make_state
from tests.harness.examples import many


class Speed(enum.Enum):
    SLOW = "slow"
    FAST = "fast"


class Address(BaseModel):
    city: str
    code: str | None = None


class Refund(BaseModel):
    amount: Decimal = Field(title="Amount to pay", description="In the order's currency")
    fee: Decimal | None = None
    count: int = 1
    rate: float = 0.5
    limit: int | None = None
    speed: Speed = Speed.SLOW
    kind: Literal["full", "part"] = "full"
    urgent: bool = False
    due: dt.date | None = None
    at: dt.datetime | None = None
    reply: str = ""
    note: str | None = None
    address: Address
    tags: list[str] = []


SCHEMA = Refund.model_json_schema()
VALUES: dict[str, Any] = Refund(
    amount=Decimal("12.50"), address=Address(city="Malmö"), at=dt.datetime(2026, 3, 31, 14, tzinfo=dt.UTC)
).model_dump(mode="json")


def field(pointer: str, values: Any = None, **options: Any) -> Input:
    made = build(SCHEMA, VALUES if values is None else values, prefix="refund", **options)
    return next(each for each in made.fields if each.pointer == pointer)


def parse(**posted: str) -> Form:
    return build(SCHEMA, VALUES, posted={f"refund/{name}": text for name, text in posted.items()}, prefix="refund")


def test_each_kind_of_field_gets_its_input() -> None:
    drawn = {each.pointer: (each.kind, each.text) for each in build(SCHEMA, VALUES, prefix="refund").fields}
    assert drawn == {
        "/amount": ("decimal", "12.50"), "/fee": ("decimal", ""), "/count": ("integer", "1"),
        "/rate": ("number", "0.5"),
        "/limit": ("integer", ""), "/speed": ("enum", "slow"), "/kind": ("enum", "full"),
        "/urgent": ("boolean", "false"), "/due": ("date", ""),
        "/at": ("datetime", "2026-03-31T14:00:00"), "/reply": ("text", ""), "/note": ("text", ""),
        "/address/city": ("text", "Malmö"), "/address/code": ("text", ""),
    }  # fmt: skip
    for reply, kind in (("a\nb", "long"), ("x" * 81, "long")):
        assert field("/reply", {**VALUES, "reply": reply}).kind == kind
    odd = {**VALUES, "amount": "a lot", "count": "many", "due": "soon", "urgent": None, "rate": [1], "extra": {"a": 1}}
    for pointer in ("/amount", "/count", "/due", "/urgent", "/rate", "/extra"):
        assert field(pointer, odd).kind == "json", "what its kind cannot show, or the schema does not know"


def test_a_decimal_is_found_however_pydantic_writes_it() -> None:
    pattern = r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"
    written: list[dict[str, Any]] = [
        {"type": "string", "format": "decimal"},
        {"type": "string", "pattern": pattern},
        {"anyOf": [{"type": "number"}, {"type": "string", "pattern": pattern}]},
        {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]},
    ]
    for part in written:
        schema = {"type": "object", "properties": {"a": part}}
        (made,) = build(schema, {"a": "1.50"}).fields
        assert made.kind == "decimal"
        assert build(schema, {"a": "1.50"}, posted={"/a": "1.60"}).value == {"a": "1.60"}


def test_labels_help_needs_and_order_come_from_the_schema_and_what_is_pinned_first() -> None:
    assert (field("/amount").label, field("/amount").help) == ("Amount to pay", "In the order's currency")
    assert (field("/amount").place.required, field("/fee").place.required) == (True, False)
    assert [choice.value for choice in field("/speed").choices] == ["slow", "fast"]
    made = build(SCHEMA, VALUES, pinned=["/address"]).fields
    assert [(each.pointer, each.pinned) for each in made][:3] == [
        ("/address/city", True), ("/address/code", True), ("/amount", False),
    ]  # fmt: skip

    class Facts(BaseModel):
        order: str
        name: str
        address: str

    stored = json.loads(json.dumps(Facts.model_json_schema(), sort_keys=True))  # as it comes from the database
    made = build(stored, {"address": "a", "name": "n", "order": "o"}).fields
    assert [each.pointer for each in made] == ["/order", "/name", "/address"]


@pytest.mark.parametrize(
    ("posted", "changed"),
    [
        ({"amount": " 99.95 "}, {"amount": "99.95"}),
        ({"count": "123456789012345678901234567890"}, {"count": 123456789012345678901234567890}),
        ({"rate": "2"}, {"rate": 2}),
        ({"limit": "-3"}, {"limit": -3}),
        ({"urgent": "true"}, {"urgent": True}),
        ({"urgent": "on"}, {"urgent": True}),
        ({"at": ""}, {"at": None}),
        ({"reply": "a\r\nb"}, {"reply": "a\nb"}),
        ({"address/city": "Lund"}, {"address": {"city": "Lund", "code": None}}),
    ],
)
def test_what_was_typed_is_read_by_its_kind(posted: dict[str, str], changed: dict[str, Any]) -> None:
    result = parse(**posted)
    assert (result.errors, result.value) == ({}, {**VALUES, **changed})
    assert [type(result.value[name]) for name in changed] == [type(value) for value in changed.values()]


@pytest.mark.parametrize(
    ("posted", "says"),
    [
        ({"amount": "12,50"}, "with a point"),
        ({"amount": "١٢"}, "with a point"),
        ({"amount": ""}, "cannot be left empty"),
        ({"count": "1.5"}, "whole number"),
        ({"count": "9" * 5000}, "too many digits"),
        ({"rate": "1e999"}, "too large"),
        ({"speed": "warp"}, "Choose one of slow, fast"),
        ({"urgent": "maybe"}, "yes or no"),
        ({"due": "31.3.2026"}, "2026-03-31"),
        ({"at": "noon"}, "2026-03-31T14:00"),
    ],
)
def test_what_cannot_be_read_is_named_and_changes_nothing(posted: dict[str, str], says: str) -> None:
    result = parse(**posted)
    assert list(result.errors) == [f"/{name}" for name in posted]
    assert says in "".join(result.errors.values())
    assert result.value is VALUES


@pytest.mark.parametrize("text", ["a\rb", "a\r\nb", "a\0b", "\n\nlead", "tail \n", "\u202edrow"])
def test_text_that_an_input_cannot_carry_is_not_altered_by_being_shown(text: str) -> None:
    values = {**VALUES, "reply": text, "note": text, "tags": [text]}
    assert build(SCHEMA, values, posted=as_posted(build(SCHEMA, values))).value is values
    assert field("/reply", values).exact is not (set(text) & {"\r", "\0"} != set())


calm = settings(max_examples=many(60), suppress_health_check=[HealthCheck.too_slow])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@calm
@given(st.dictionaries(st.sampled_from([*Refund.model_fields, "extra", "a/b~c"]), json_values))
def test_a_form_that_nobody_touched_gives_back_the_very_arguments(values: dict[str, Any]) -> None:
    made = build(SCHEMA, values, prefix="p")
    result = build(SCHEMA, values, posted=as_posted(made), prefix="p")
    assert result.value is values
    assert (result.touched, result.errors) == ({}, {})


@calm
@given(json_values)
def test_arguments_without_a_schema_are_one_raw_field_that_gives_them_back(value: Any) -> None:
    (made,) = build({}, value, prefix="p").fields
    assert made.kind == "json"
    assert build({}, value, posted={"p": made.text}, prefix="p").value is value
    assert build({}, MISSING, posted={"p": made.text}, prefix="p").errors == {}


@pytest.mark.parametrize(("text", "says"), [("[1", "Write JSON"), ('{"a": 1, "a": 2}', "twice"), ("[NaN]", "NaN")])
def test_raw_json_is_read_as_strictly_as_any_other(text: str, says: str) -> None:
    read = build({}, {"a": 1}, posted={"p": text}, prefix="p")
    assert read.value == {"a": 1}
    assert says in read.errors[""]


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"type": "integer", "default": 100}, "not there; default 100"),
        ({"type": "boolean", "default": True}, "not there; default true"),
        ({"type": "string", "default": ""}, "not there; default empty"),
        (
            {"type": "string", "format": "date-time", "default": "2026-01-01T00:00:00Z"},
            "not there; default 2026-01-01T",
        ),
    ],
)
def test_a_default_is_told_and_not_drawn_as_if_it_were_there(part: dict[str, Any], told: str) -> None:
    value: dict[str, Any] = {}
    form = build({"type": "object", "properties": {"limit": part}}, value, prefix="p")
    [limit] = form.fields
    assert (limit.text, limit.rendered, form.value) == ("", "", value)
    assert any(each.startswith(told) for each in limit.hints)


steady = settings(max_examples=many(150), suppress_health_check=[HealthCheck.too_slow])
KEYWORDS = """type properties items anyOf oneOf allOf enum const required $ref $defs title format pattern prefixItems
additionalProperties patternProperties discriminator default minimum maxLength uniqueItems writeOnly contentEncoding
description multipleOf"""
keywords = st.sampled_from(KEYWORDS.split())
texts_of_schemas = st.sampled_from(
    ["object", "array", "string", "integer", "null", "a", "#", "#/$defs/a", "date", "password", ""]
)
plain = st.none() | st.booleans() | st.integers() | texts_of_schemas
schemas = st.recursive(
    st.dictionaries(keywords, plain, max_size=4),
    lambda inner: st.dictionaries(
        keywords,
        plain | inner | st.lists(inner | plain, max_size=3) | st.dictionaries(texts_of_schemas, inner, max_size=3),
        max_size=4,
    ),
    max_leaves=12,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | texts_of_schemas,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts_of_schemas | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@steady
@given(schemas, values)
def test_any_schema_draws_a_form_of_any_value_that_gives_it_back(schema: dict[str, Any], value: Any) -> None:
    shown = build(schema, value, prefix="p")
    assert build(schema, value, prefix="p", posted=as_posted(shown)).value is value
    assert is_as_rendered(rendered(shown), as_posted(shown), "p")


@steady
@given(schemas, values, st.dictionaries(st.text(max_size=8), st.text(max_size=5), max_size=6))
def test_nothing_that_is_posted_breaks_a_form(schema: dict[str, Any], value: Any, posted: dict[str, str]) -> None:
    shown = as_posted(build(schema, value, prefix="p"))
    mixed = {**shown, **{f"p{name}": text for name, text in posted.items()}}
    mixed |= dict(zip(shown, posted.values(), strict=False))
    read = build(schema, value, prefix="p", posted=mixed)
    assert isinstance(read.errors, dict)
    if is_as_rendered(rendered(build(schema, value, prefix="p")), mixed, "p"):
        assert (read.value is value, read.touched, read.errors) == (True, {}, {})


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert [each.kind for each in build(schema, {"a": 1}).fields] == ["json"]
    union: dict[str, Any] = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "array"}]}}}
    assert build(union, {"a": 1}).value == {"a": 1}
    itself = {"anyOf": [{"$ref": "#"}, {"type": "null"}]}
    assert (resolve_part(itself, itself), schema_at(itself, "/a")) == ({}, {})
    nested = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}}}
    deep: dict[str, Any] = {}
    for _ in range(30):
        deep = {"a": deep}
    (field,) = build(nested, deep).fields
    assert (field.kind, field.pointer) == ("json", "/a" * 13), "as deep as its bound, and raw below"


def test_a_part_cannot_put_its_own_definitions_before_those_it_refers_to() -> None:
    part = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}
    schema = {"properties": {"b": part}, "$defs": {"a": {"writeOnly": True}}}
    found = schema_at(schema, "/b")
    assert resolve_part(found, found) == {"$defs": schema["$defs"], "writeOnly": True}


def test_a_schema_that_doubles_at_each_level_draws_no_more_than_its_bound() -> None:
    part: dict[str, Any] = {"type": "object", "properties": {f"m{at}": {"$ref": "#/$defs/A"} for at in range(60)}}
    shown = build({"$ref": "#/$defs/A", "$defs": {"A": part}}, {})
    assert len(shown.nodes) < 1000


def test_what_a_schema_refers_to_elsewhere_is_not_fetched() -> None:
    for ref in ("https://evil.example/schema", "file:///etc/passwd", "other.json#/x"):
        assert [each.kind for each in build({"$ref": ref}, {"a": 1}).fields] == ["json"]


def test_a_pattern_is_named_beside_a_fault_and_never_run() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$"}
    (field,) = build(schema, "a", prefix="p", posted={"p": "a" * 61 + "!"}, errors={"": "Should match."}).fields
    assert (field.hints, field.value) == (["in the form ^(a+)+$"], "a" * 61 + "!")


def test_a_huge_enum_is_suggested_in_part_and_taken_in_whole() -> None:
    schema = {"enum": [f"v{at}" for at in range(20_000)]}
    (field,) = build(schema, "v1").fields
    assert (field.choices, len(field.suggestions)) == ((), 200)
    assert field.hints == ["one of 20,000 values"]
    assert build(schema, "v1", prefix="p", posted={"p": "v19999"}).value == "v19999"
    assert "and 19,980 more" in build(schema, "v1", prefix="p", posted={"p": "nothing"}).errors[""]


@pytest.mark.parametrize("name", ["a/b", "~new1", "!order", 'q"><script>', "a\r\nb", "\u202ebid", "", "a\0b"])
def test_no_name_breaks_out_of_its_place(name: str) -> None:
    schema = {"type": "object", "properties": {name: {"type": "string"}, "order": {"type": "string"}}}
    value = {name: "old", "order": "o"}
    shown = build(schema, value, prefix="args.a")
    field = next(each for each in shown.fields if each.text == "old")
    assert names.split(field.name)[:2] == ("args.a", "")
    assert field.name == field.name.strip("\r\n")
    assert not any(char in field.name for char in "\r\n\0\u202e")
    assert build(schema, value, prefix="args.a", posted={field.name: "new"}).value == {name: "new", "order": "o"}
    assert len({each.id for each in shown.fields}) == 2


def test_a_secret_is_never_shown_and_changes_only_when_it_is_typed() -> None:
    schema = {"type": "object", "properties": {"key": {"type": "string", "format": "password", "writeOnly": True}}}
    value = {"key": "s3cret"}
    shown = build(schema, value, prefix="p")
    (field,) = shown.fields
    assert isinstance(field, FormField)
    assert (field.kind, field.text, field.rendered) == ("secret", "", "")
    assert build(schema, value, prefix="p", posted=as_posted(shown)).value is value
    assert build(schema, value, prefix="p", posted={"p/key": "new"}).value == {"key": "new"}


HIDDEN: dict[str, Any] = {"type": "string", "writeOnly": True}
CARDS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"amount": HIDDEN}},
    {"type": "object", "properties": {"amount": {"$ref": "#/$defs/A"}}, "$defs": {"A": HIDDEN}},
    {"type": "object", "properties": {"amount": {"$ref": "#/properties/reply"}, "reply": HIDDEN}},
    {"type": "object", "properties": {"amount": {"anyOf": [HIDDEN, {"type": "null"}]}}},
]


def sheet(schema: dict[str, Any], plan: dict[str, Any], **more: Any) -> ActionSheet:
    [first, *_] = make_card().actions
    asked = make_card(actions=[replace(first, schema=schema, **more)])
    spec = replace(make_spec(), state_schema=plan)
    card = completed(asked, step=spec.step("review"), plan=spec, state=make_state())
    return actions.sheets(card)[0]


def of_proposal(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"proposal": schema}}


@pytest.mark.parametrize("schema", CARDS, ids=str)
def test_a_card_hides_nothing_that_the_plan_shows(schema: dict[str, Any]) -> None:
    plain = {"type": "object", "properties": {"amount": {"type": "string"}, "reply": HIDDEN}}
    [amount] = [each for each in sheet(schema, of_proposal(plain)).fields if each.label == "Amount"]
    assert (amount.kind, amount.text) == ("text", "120.00")


def test_what_the_plan_hides_stays_hidden_with_a_schema_of_the_card_and_without() -> None:
    plan = of_proposal(CARDS[0])
    for schema in ({}, CARDS[0]):
        [amount] = [each for each in sheet(schema, plan).fields if each.label == "Amount"]
        assert (amount.kind, amount.text, amount.value) == ("secret", "", "120.00")
    # An action without a place in the state hides nothing.
    [placeless] = sheet(CARDS[0], {}, pointer="", pinned=(), arguments={"amount": "120.00"}).values
    assert isinstance(placeless, FormField)
    assert (placeless.kind, placeless.text) == ("text", "120.00")


def told(before: str, after: str) -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in words.stretches(before, after)]


def test_a_word_that_changed_is_struck_out_beside_the_new_one() -> None:
    assert told("pay the frames now", "pay the lenses now") == [
        ("same", "pay the "), ("gone", "frames"), ("put", "lenses"), ("same", " now"),
    ]  # fmt: skip


def test_what_stayed_far_from_a_change_is_cut_out_and_kept_whole() -> None:
    before = "x " * 500 + "one" + " y" * 500
    first, gone, put, last = words.stretches(before, before.replace("one", "two"))
    assert (gone.text, put.text) == ("one", "two")
    assert len(first.cut) == len(last.cut) == 1000 - words.AROUND
    assert (first.text, last.tail) == ("", "")
    assert len(first.tail) == len(last.text) == words.AROUND


def test_sixty_thousand_characters_are_compared_within_bounds() -> None:
    before = "".join(f"Line {at} of the letter, as it was.\n" for at in range(1_700))
    after = before.replace("Line 4 ", "Row 4 ").replace("Line 1600 ", "Row 1600 ")
    assert [text for kind, text in told(before, after) if kind == "put"] == ["Row", "Row"]
    noise = "".join(chr(97 + at * at % 26) + " " for at in range(30_000))
    assert {kind for kind, _ in told(noise, noise[::-1] + "z")} <= {"same", "gone", "put"}
