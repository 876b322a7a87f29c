"""Finding one value in a state, and a page of a long list."""

from __future__ import annotations

from itertools import islice
from typing import Any


def at_pointer(value: Any, pointer: str) -> Any:
    """Return the value at a JSON Pointer (RFC 6901). Raises LookupError where there is none."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            if not (name.isascii() and name.isdigit() and len(name) < 12):
                raise LookupError(pointer)
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value[name]
        else:
            raise LookupError(pointer)
    return value


def members(value: dict[str, Any] | list[Any], first: int, count: int) -> dict[str, Any]:
    """Return `count` members of a list or an object from `first` on, by name; a list's by their indices."""
    if isinstance(value, list):
        return {str(first + place): item for place, item in enumerate(value[first : first + count])}
    return dict(islice(value.items(), first, first + count))
