"""JSON Pointers (RFC 6901), the references of a JSON Schema by them, and the differences of two JSON values. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DEEPEST = 12  # references that lead to references
MISSING: Any = type("Missing", (), {"__repr__": lambda _: "MISSING"})()


@dataclass(frozen=True)
class Change:
    """One place that differs; `before` or `after` is MISSING where it was added or removed."""

    pointer: str
    before: Any
    after: Any

    def as_edit(self) -> dict[str, Any]:
        """Return the operation of a JSON Patch (RFC 6902)."""
        if self.after is MISSING:
            return {"op": "remove", "path": self.pointer}
        return {"op": "add" if self.before is MISSING else "replace", "path": self.pointer, "value": self.after}


def pointer_to(*parts: object) -> str:
    """Return the pointer to which names and positions lead; "" is the whole value."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def parts_of(pointer: str) -> list[str]:
    """Return the names and positions that lead there. Raises ValueError where it is no pointer."""
    whole, *parts = pointer.split("/")
    if whole:
        raise ValueError(f"{pointer!r} is no JSON Pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def get(value: Any, pointer: str) -> Any:
    """Return what is there, or MISSING."""
    try:
        parts = parts_of(pointer)
    except ValueError:
        return MISSING
    for part in parts:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def resolve_references(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return a part of a schema without its `$ref`s within `root`; members beside one replace those that it leads to.

    A reference that leads nowhere, or to itself, allows anything, as an empty schema does.
    """
    for _ in range(DEEPEST):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#"):
            return schema
        target = get(root, reference[1:])
        if not isinstance(target, Mapping):
            return {}
        schema = {**target, **{name: value for name, value in schema.items() if name != "$ref"}}
    return {}


def replaced(value: Any, pointer: str, new: Any) -> Any:
    """Return a copy with another value there; with MISSING the member is removed. Its parent must be there."""
    parts = parts_of(pointer)
    if not parts:
        return new
    made = copy.deepcopy(value)
    parent = get(made, pointer_to(*parts[:-1]))
    name: Any = int(parts[-1]) if isinstance(parent, list) else parts[-1]
    if new is not MISSING:
        parent[name] = new
    elif isinstance(parent, list) or name in parent:
        del parent[name]
    return made


def changes(before: Any, after: Any, pointer: str = "") -> Iterator[Change]:
    """Yield each place that differs. Lists of another length differ as a whole, and so do `1` and `1.0`."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(member for member in after if member not in before)]:
            yield from changes(before.get(name, MISSING), after.get(name, MISSING), pointer + pointer_to(name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for at, (item, other) in enumerate(zip(before, after, strict=True)):
            yield from changes(item, other, pointer + pointer_to(at))
    elif type(before) is not type(after) or before != after:
        yield Change(pointer, before, after)
