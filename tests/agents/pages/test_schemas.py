"""A state's schema as a state_fields: a program writes it, so any part of it may be of any type."""

from __future__ import annotations

from typing import Any

import pytest

from agents.pages.agents import state_fields

ITEM = {"description": "One line.", "type": "object"}


@pytest.mark.parametrize(
    ("part", "kind", "about"),
    [
        ({"$ref": "#/$defs/Item"}, "Item", "One line."),
        ({"type": "array", "items": {"$ref": "#/$defs/Item"}}, "list of Item", ""),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text or nothing", ""),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "text or whole number", ""),
        ({"type": "array", "items": True}, "list of anything", ""),
        ({"anyOf": 7, "type": "number"}, "number", ""),
        ({"$ref": 7, "description": ["so"]}, "anything", ""),
        (True, "anything", ""),
    ],
)
def test_a_field_is_told_in_a_word_or_two(part: Any, kind: str, about: str) -> None:
    [field] = state_fields({"type": "object", "properties": {"a": part}, "required": ["a"], "$defs": {"Item": ITEM}})
    assert (field.kind, field.about, field.required) == (kind, about, True)


@pytest.mark.parametrize("schema", [{}, {"properties": 7}, {"properties": {"a": {}}, "required": 7}])
def test_a_schema_of_the_wrong_types_has_a_table_all_the_same(schema: dict[str, Any]) -> None:
    assert [(field.name, field.required) for field in state_fields(schema)] in ([], [("a", False)])
