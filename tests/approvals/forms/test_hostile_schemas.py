"""A schema is the agent's word: whatever it holds, a form is drawn, small, and gives the value back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals.forms import build, names
from approvals.forms.nodes import FormField
from approvals.schema.walk import resolve_part, schema_at
from tests.approvals.forms.posted_forms import as_posted
from tests.harness.examples import many

calm = settings(max_examples=many(150), suppress_health_check=[HealthCheck.too_slow])
KEYWORDS = """type properties items anyOf oneOf allOf enum const required $ref $defs title format pattern prefixItems
additionalProperties patternProperties discriminator default minimum maxLength uniqueItems writeOnly contentEncoding
description multipleOf"""
keywords = st.sampled_from(KEYWORDS.split())
words = st.sampled_from(["object", "array", "string", "integer", "null", "a", "#", "#/$defs/a", "date", "password", ""])
plain = st.none() | st.booleans() | st.integers() | words
schemas = st.recursive(
    st.dictionaries(keywords, plain, max_size=4),
    lambda inner: st.dictionaries(
        keywords,
        plain | inner | st.lists(inner | plain, max_size=3) | st.dictionaries(words, inner, max_size=3),
        max_size=4,
    ),
    max_leaves=12,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@calm
@given(schemas, values)
def test_any_schema_draws_a_form_of_any_value_that_gives_it_back(schema: dict[str, Any], value: Any) -> None:
    shown = build(schema, value, prefix="p")
    assert build(schema, value, prefix="p", posted=as_posted(shown)).value is value


@calm
@given(schemas, values, st.dictionaries(st.text(max_size=8), st.text(max_size=5), max_size=6))
def test_nothing_that_is_posted_breaks_a_form(schema: dict[str, Any], value: Any, posted: dict[str, str]) -> None:
    shown = as_posted(build(schema, value, prefix="p"))
    mixed = {**shown, **{f"p{name}": text for name, text in posted.items()}}
    mixed |= dict(zip(shown, posted.values(), strict=False))
    read = build(schema, value, prefix="p", posted=mixed)
    assert isinstance(read.errors, dict)


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert [each.kind for each in build(schema, {"a": 1}).fields] == ["json"]
    union: dict[str, Any] = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "array"}]}}}
    assert build(union, {"a": 1}).value == {"a": 1}


def test_a_union_of_nothing_but_itself_ends() -> None:
    """It was followed until the interpreter gave up."""
    schema = {"anyOf": [{"$ref": "#"}, {"type": "null"}]}
    assert resolve_part(schema, schema) == {}
    assert schema_at(schema, "/a") == {}


def test_no_member_is_described_by_the_schema_of_items() -> None:
    """A digit that is none in JSON broke it, too."""
    schema = {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}
    assert [schema_at(schema, place) for place in ("/0", "/1", "/a", "/\N{SUPERSCRIPT TWO}")] == [
        {"type": "string"}, {"type": "integer"}, {}, {},
    ]  # fmt: skip


def test_a_part_cannot_put_its_own_definitions_before_those_it_refers_to() -> None:
    part = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}
    schema = {"properties": {"b": part}, "$defs": {"a": {"writeOnly": True}}}
    found = schema_at(schema, "/b")
    assert resolve_part(found, found) == {"$defs": schema["$defs"], "writeOnly": True}


def test_a_model_that_nests_itself_goes_as_deep_as_its_bound_and_is_raw_json_below() -> None:
    nested = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}}}
    deep: dict[str, Any] = {}
    for _ in range(30):
        deep = {"a": deep}
    (field,) = build(nested, deep).fields
    assert (field.kind, field.pointer) == ("json", "/a" * 13)


def test_a_schema_that_doubles_at_each_level_draws_no_more_than_its_bound() -> None:
    part: dict[str, Any] = {"type": "object", "properties": {f"m{at}": {"$ref": "#/$defs/A"} for at in range(60)}}
    shown = build({"$ref": "#/$defs/A", "$defs": {"A": part}}, {})
    assert len(shown.nodes) < 1000
    text = {"type": "object", "properties": {**part["properties"], "t": {"type": "string"}}}
    assert len(build({"$ref": "#/$defs/A", "$defs": {"A": text}}, {}).nodes) < 5000


def test_what_a_schema_refers_to_elsewhere_is_not_fetched() -> None:
    for ref in ("https://evil.example/schema", "file:///etc/passwd", "other.json#/x"):
        assert [each.kind for each in build({"$ref": ref}, {"a": 1}).fields] == ["json"]


def test_a_pattern_is_named_beside_a_fault_and_never_run() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$"}
    (field,) = build(schema, "a", prefix="p", posted={"p": "a" * 61 + "!"}, errors={"": "Should match."}).fields
    assert field.hints == ["in the form ^(a+)+$"]
    assert field.value == "a" * 61 + "!"


def test_a_huge_enum_is_suggested_in_part_and_taken_in_whole() -> None:
    schema = {"enum": [f"v{at}" for at in range(20_000)]}
    (field,) = build(schema, "v1").fields
    assert (field.choices, len(field.suggestions)) == ((), 200)
    assert field.hints == ["one of 20,000 values"]
    assert build(schema, "v1", prefix="p", posted={"p": "v19999"}).value == "v19999"
    assert "and 19,980 more" in build(schema, "v1", prefix="p", posted={"p": "nothing"}).errors[""]


@pytest.mark.parametrize(
    "name", ["a/b", "~new1", "!order", 'q"><script>', "a\nb", "a\r\nb", "\u202ebid", "%41", "", "a\0b"]
)
def test_no_name_breaks_out_of_its_place(name: str) -> None:
    schema = {"type": "object", "properties": {name: {"type": "string"}, "order": {"type": "string"}}}
    value = {name: "old", "order": "o"}
    shown = build(schema, value, prefix="args.a")
    field = next(each for each in shown.fields if each.text == "old")
    assert names.split(field.name)[:2] == ("args.a", "")
    assert field.name == field.name.strip("\r\n")
    assert not any(char in field.name for char in "\r\n\0\u202e")
    assert build(schema, value, prefix="args.a", posted={field.name: "new"}).value == {name: "new", "order": "o"}


def test_two_names_never_share_an_id() -> None:
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("a/b", "a-b", "a b", "a_b", "a.b")},
    }
    ids = [each.id for each in build(schema, {}).fields]
    assert len(set(ids)) == len(ids)


def test_a_secret_is_never_shown_and_changes_only_when_it_is_typed() -> None:
    schema = {"type": "object", "properties": {"key": {"type": "string", "format": "password", "writeOnly": True}}}
    value = {"key": "s3cret"}
    shown = build(schema, value, prefix="p")
    (field,) = shown.fields
    assert isinstance(field, FormField)
    assert (field.kind, field.text, field.rendered) == ("secret", "", "")
    assert build(schema, value, prefix="p", posted=as_posted(shown)).value is value
    assert build(schema, value, prefix="p", posted={"p/key": "new"}).value == {"key": "new"}
