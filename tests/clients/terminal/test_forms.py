"""Forms of arguments: what was not touched stays as it was, and what was typed gets the type of its schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from holdpoint import json_pointer
from holdpoint.json_pointer import MISSING, Change, changes
from holdpoint.terminal.forms import NotValid, fields_of, filled

ORDER: dict[str, Any] = {
    "to": {"name": "ACME", "street": "Quay 7"},
    "amount": "120.00",
    "count": 3,
    "share": 1.0,
    "huge": 2**70,
    "urgent": False,
    "speed": "slow",
    "lines": [{"sku": "COF-250"}],
    "note": None,
}
SCHEMA: dict[str, Any] = {
    "$defs": {"Address": {"properties": {"name": {"type": "string", "title": "Name"}, "street": {"type": "string"}}}},
    "properties": {
        "to": {"$ref": "#/$defs/Address"},
        "amount": {"type": "string", "description": "in EUR"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "huge": {"type": "integer"},
        "urgent": {"type": "boolean"},
        "speed": {"enum": ["slow", "fast"]},
        "memo": {"type": "string"},
    },
    "required": ["amount", "count"],
}


def typed(**by_pointer: str) -> Any:
    """The order with this typed into its form."""
    return filled(ORDER, fields_of(ORDER, SCHEMA), {f"/{name}": each for name, each in by_pointer.items()})


def test_a_field_is_made_for_each_value_and_for_what_the_schema_knows_besides() -> None:
    fields = {each.pointer: each for each in fields_of(ORDER, SCHEMA)}
    assert list(fields) == ["/to/name", "/to/street", "/amount", "/count", "/share", "/huge", "/urgent", "/speed",
                            "/lines", "/note", "/memo"]  # fmt: skip
    assert (fields["/to/name"].label, fields["/amount"].hint) == ("Name", "in EUR")
    assert fields["/speed"].options == ("slow", "fast")
    assert (fields["/memo"].value, fields["/memo"].text, fields["/memo"].required) == (MISSING, "", False)


def test_what_was_not_touched_is_the_very_value() -> None:
    fields = fields_of(ORDER, SCHEMA)
    assert filled(ORDER, fields, {each.pointer: each.text for each in fields}) is ORDER


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("amount", "100.00", "100.00"),
        ("amount", "1", "1"),
        ("count", "4", 4),
        ("share", "0.5", 0.5),
        ("share", "1", 1),
        ("huge", str(2**71), 2**71),
        ("urgent", "true", True),
        ("speed", "fast", "fast"),
        ("lines", '[{"sku": "TEA-100"}]', [{"sku": "TEA-100"}]),
        ("memo", "new", "new"),
    ],
)
def test_what_is_typed_gets_its_type(name: str, text: str, value: Any) -> None:
    found = typed(**{name: text})[name]
    assert (found, type(found)) == (value, type(value))
    assert ORDER.get(name, MISSING) != value or type(ORDER[name]) is not type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [("count", "4.5"), ("count", "many"), ("urgent", "1"), ("share", "NaN"), ("lines", "["), ("count", "")],
)
def test_what_does_not_fit_is_refused_with_its_label(name: str, text: str) -> None:
    with pytest.raises(NotValid, match=name):
        typed(**{name: text})


def test_what_may_be_left_out_is_left_out_when_it_is_emptied() -> None:
    assert "speed" not in typed(speed="")


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert [each.pointer for each in fields_of({"a": "b"}, schema)] == ["/a"]


def test_differences_tell_one_number_from_another_of_the_same_value() -> None:
    assert list(changes({"a": 1, "b": [1, 2]}, {"a": 1.0, "b": [1, 3], "c/d": None})) == [
        Change("/a", 1, 1.0), Change("/b/1", 2, 3), Change("/c~1d", MISSING, None),
    ]  # fmt: skip
    assert list(changes(ORDER, json.loads(json.dumps(ORDER)))) == []


def test_a_value_is_replaced_in_a_copy() -> None:
    before = {"a": [{"b": 1}]}
    assert json_pointer.replaced(before, "/a/0/b", 2) == {"a": [{"b": 2}]}
    assert json_pointer.replaced(before, "/a/0", MISSING) == {"a": []}
    assert before == {"a": [{"b": 1}]}
