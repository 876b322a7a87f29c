"""A state's JSON Schema as a readable table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from approvals.schema.walk import (
    Schema,
    find_definition,
    property_schemas,
    referred_name,
    sanitise_schema,
    union_branches,
)

DEPTH = 4  # unions and lists in each other whose types are named


@dataclass(frozen=True, slots=True)
class StateField:
    """One field of the state. `about` is the agent's own description (untrusted)."""

    name: str
    kind: str
    required: bool
    about: str


def table(schema: Schema) -> list[StateField]:
    """Return the fields, in their order."""
    known = sanitise_schema(schema)
    required = known.get("required", ())
    return [
        StateField(name, kind(part), name in required, about(part, known))
        for name, part in property_schemas(known).items()
    ]


def kind(part: Schema, depth: int = 0) -> str:
    """Return the type of a field in a word or two: "list of Item", "text or nothing". `part` is sound."""
    if depth > DEPTH:
        return "anything"
    if name := referred_name(part):
        return name
    if union := union_branches(part):
        return " or ".join(dict.fromkeys(kind(item, depth + 1) for item in union))
    if part.get("type") == "array":
        return f"list of {kind(part.get('items', {}), depth + 1)}"
    names = {
        "string": "text", "integer": "whole number", "number": "number", "boolean": "yes or no",
        "null": "nothing", "object": "object",
    }  # fmt: skip
    return names.get(str(part.get("type")), "anything")


def about(part: Schema, root: Schema) -> str:
    """Return its description, or that of the definition that it refers to."""
    return str(part.get("description") or find_definition(part, root).get("description", ""))


def required(schema: Schema) -> dict[str, Any]:
    """Return the schema of an object with the required fields alone, which a run cannot start without."""
    names = schema.get("required", ())
    parts = {name: part for name, part in schema.get("properties", {}).items() if name in names}
    return {"type": "object", "properties": parts, "required": list(parts), "$defs": schema.get("$defs", {})}
