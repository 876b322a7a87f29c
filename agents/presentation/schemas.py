"""A state's JSON Schema as a readable table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from approvals.schema.walk import definition


@dataclass(frozen=True, slots=True)
class StateField:
    """One field of the state. `about` is the agent's own description (untrusted)."""

    name: str
    kind: str
    required: bool
    about: str


def table(schema: Mapping[str, Any]) -> list[StateField]:
    """Return the fields, in their order."""
    required = schema.get("required", ())
    parts = schema.get("properties", {})
    return [StateField(name, kind(part, schema), name in required, about(part, schema)) for name, part in parts.items()]


def kind(part: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """Return the type of a field in a word or two: "list of Item", "text or nothing"."""
    if not isinstance(part, Mapping) or depth > 4:
        return "anything"
    if "$ref" in part:
        return str(part["$ref"]).rpartition("/")[2]
    if "anyOf" in part:
        return _(" or ").join(dict.fromkeys(kind(each, root, depth + 1) for each in part["anyOf"]))
    said = part.get("type")
    if said == "array":
        return _("list of %(kind)s") % {"kind": kind(part.get("items", {}), root, depth + 1)}
    names = {
        "string": _("text"), "integer": _("whole number"), "number": _("number"), "boolean": _("yes or no"),
        "null": _("nothing"), "object": _("object"),
    }  # fmt: skip
    return names.get(str(said), _("anything"))


def about(part: Any, root: Mapping[str, Any]) -> str:
    """Return its description, or that of the definition that it refers to."""
    if not isinstance(part, Mapping):
        return ""
    return str(part.get("description") or definition(part, root).get("description", ""))


def required(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with the required fields alone, which a run cannot start without."""
    names = schema.get("required", ())
    parts = {name: part for name, part in schema.get("properties", {}).items() if name in names}
    return {"type": "object", "properties": parts, "required": list(parts), "$defs": schema.get("$defs", {})}
