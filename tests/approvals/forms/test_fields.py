"""A form from a schema: what comes back as it was shown changes nothing, and what was typed is read by kind."""

from __future__ import annotations

import datetime as dt
import enum
import json
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from approvals.forms import MISSING, Form, build
from approvals.forms import FormField as Input
from approvals.schema.walk import schema_at
from tests.approvals.forms.posted_forms import as_posted
from tests.harness.examples import many


class Speed(enum.Enum):
    """How fast."""

    SLOW = "slow"
    FAST = "fast"


class Address(BaseModel):
    """Where to."""

    city: str
    code: str | None = None


class Refund(BaseModel):
    """All kinds of fields."""

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
    """The field at a pointer."""
    made = build(SCHEMA, VALUES if values is None else values, prefix="refund", **options)
    return next(each for each in made.fields if each.pointer == pointer)


def parse(**posted: str) -> Form:
    """Read what is posted under these top-level names."""
    return build(SCHEMA, VALUES, posted={f"refund/{name}": text for name, text in posted.items()}, prefix="refund")


@pytest.mark.parametrize(
    ("pointer", "kind", "value"),
    [
        ("/amount", "decimal", "12.50"),
        ("/fee", "decimal", ""),
        ("/count", "integer", "1"),
        ("/rate", "number", "0.5"),
        ("/limit", "integer", ""),
        ("/speed", "enum", "slow"),
        ("/kind", "enum", "full"),
        ("/urgent", "boolean", "false"),
        ("/due", "date", ""),
        ("/at", "datetime", "2026-03-31T14:00:00"),
        ("/reply", "text", ""),
        ("/address/city", "text", "Malmö"),
        ("/address/code", "text", ""),
    ],
)
def test_each_kind_of_field_gets_its_input(pointer: str, kind: str, value: str) -> None:
    made = field(pointer)
    assert (made.kind, made.text, made.name) == (kind, value, f"refund{pointer}")


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


def test_labels_help_and_needs_come_from_the_schema() -> None:
    assert (field("/amount").label, field("/amount").help) == ("Amount to pay", "In the order's currency")
    assert (field("/amount").place.required, field("/fee").place.required) == (True, False)
    assert [choice.value for choice in field("/speed").choices] == ["slow", "fast"]


def test_pinned_fields_come_first() -> None:
    made = build(SCHEMA, VALUES, pinned=["/address"]).fields
    assert [each.pointer for each in made][:3] == ["/address/city", "/address/code", "/amount"]
    assert [each.pinned for each in made][:3] == [True, True, False]


def test_required_fields_keep_the_order_of_their_declaration_when_the_schemas_keys_were_sorted() -> None:
    class Facts(BaseModel):
        order: str
        name: str
        address: str

    stored = json.loads(json.dumps(Facts.model_json_schema(), sort_keys=True))
    made = build(stored, {"address": "a", "name": "n", "order": "o"}).fields
    assert [each.pointer for each in made] == ["/order", "/name", "/address"]


def test_a_long_text_gets_lines_of_its_own() -> None:
    assert field("/reply", {**VALUES, "reply": "a\nb"}).kind == "long"
    assert field("/reply", {**VALUES, "reply": "x" * 81}).kind == "long"


def test_a_value_that_its_kind_cannot_show_is_raw_json() -> None:
    odd = {**VALUES, "amount": "a lot", "count": "many", "due": "soon", "urgent": None, "rate": [1]}
    for pointer in ("/amount", "/count", "/due", "/urgent", "/rate"):
        assert field(pointer, odd).kind == "json"


def test_a_name_that_the_schema_does_not_know_is_shown_all_the_same() -> None:
    made = build(SCHEMA, {**VALUES, "extra": {"a": 1}}).fields
    assert made[-1].pointer == "/extra"
    assert made[-1].kind == "json"


def test_what_was_typed_is_shown_again_with_its_error() -> None:
    made = field("/amount", posted={"refund/amount": "12,50"}, errors={"/amount": "Write a number."})
    assert (made.text, made.error) == ("12,50", "Write a number.")
    tagged = {**VALUES, "tags": ["a", "b"]}
    assert field("/tags/1", tagged, errors={"/tags/1": "Too long."}).error == "Too long."


@pytest.mark.parametrize(
    ("posted", "changed"),
    [
        ({"amount": " 99.95 "}, {"amount": "99.95"}),
        ({"fee": "1"}, {"fee": "1"}),
        ({"count": "123456789012345678901234567890"}, {"count": 123456789012345678901234567890}),
        ({"rate": "0.25"}, {"rate": 0.25}),
        ({"rate": "2"}, {"rate": 2}),
        ({"limit": "-3"}, {"limit": -3}),
        ({"speed": "fast"}, {"speed": "fast"}),
        ({"urgent": "true"}, {"urgent": True}),
        ({"urgent": "on"}, {"urgent": True}),
        ({"due": "2026-04-01"}, {"due": "2026-04-01"}),
        ({"at": ""}, {"at": None}),
        ({"reply": "a\r\nb"}, {"reply": "a\nb"}),
        ({"note": "a"}, {"note": "a"}),
        ({"address/city": "Lund"}, {"address": {"city": "Lund", "code": None}}),
    ],
)
def test_what_was_typed_is_read_by_its_kind(posted: dict[str, str], changed: dict[str, Any]) -> None:
    result = parse(**posted)
    assert result.errors == {}
    assert result.value == {**VALUES, **changed}
    assert [type(result.value[name]) for name in changed] == [type(value) for value in changed.values()]


@pytest.mark.parametrize(
    ("posted", "says"),
    [
        ({"amount": "12,50"}, "with a point"),
        ({"amount": "NaN"}, "with a point"),
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


def test_all_faults_are_told_at_once() -> None:
    assert sorted(parse(amount="x", count="y", due="z").errors) == ["/amount", "/count", "/due"]


def test_an_absent_name_stays_absent_unless_it_is_filled_in() -> None:
    sparse = {name: value for name, value in VALUES.items() if name not in ("fee", "count")}
    assert build(SCHEMA, sparse, posted=as_posted(build(SCHEMA, sparse))).value is sparse
    filled = build(SCHEMA, sparse, posted={"/count": "2"}).value
    assert filled == {**sparse, "count": 2}


@pytest.mark.parametrize(
    "text", ["a\rb", "a\r\nb", "a\0b", "\x1b[31m", "\n\nlead", "tail \n", "\u202edrow", "\ufeff", ""]
)
def test_text_that_an_input_cannot_carry_is_not_altered_by_being_shown(text: str) -> None:
    values = {**VALUES, "reply": text, "note": text, "tags": [text]}
    assert build(SCHEMA, values, posted=as_posted(build(SCHEMA, values))).value is values


def test_a_field_says_when_an_edit_of_it_would_lose_characters() -> None:
    assert not field("/reply", {**VALUES, "reply": "a\rb"}).exact
    assert not field("/reply", {**VALUES, "reply": "a\0b"}).exact
    assert field("/reply", {**VALUES, "reply": "a\n\tb é"}).exact


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
    assert result.touched == {}
    assert result.errors == {}


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


def test_the_schema_of_a_place_keeps_the_definitions_it_needs() -> None:
    part = schema_at(SCHEMA, "/address")
    assert [each.pointer for each in build(part, VALUES["address"]).fields] == ["/city", "/code"]
    assert schema_at(SCHEMA, "/nowhere") == {}


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"type": "integer", "default": 100}, "not there; default 100"),
        ({"enum": ["a", "b"], "default": "b"}, "not there; default b"),
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


def test_a_default_that_somebody_types_is_there() -> None:
    schema = {"type": "object", "properties": {"limit": {"type": "integer", "default": 100}}}
    assert build(schema, {}, prefix="p", posted={"p/limit": "100"}).value == {"limit": 100}


def test_a_text_that_a_narrow_column_would_cut_off_asks_for_two() -> None:
    """An address was cut off on the page of an edit, in four columns."""
    schema = {"type": "object", "properties": {"to": {"type": "string"}, "cc": {"type": "string"}}}
    form = build(schema, {"to": "kaethe.muehlbauer@gruenstrasse.example", "cc": "ann@holdpoint.example"}, prefix="args")
    assert [each.cut_off for each in form.fields] == [True, False]
