"""A page of a long list or object."""

from __future__ import annotations

from itertools import islice
from typing import Any


def members(value: dict[str, Any] | list[Any], first: int, count: int) -> dict[str, Any]:
    """Return `count` members of a list or an object from `first` on, by name; a list's by their indices."""
    if isinstance(value, list):
        return {str(first + place): item for place, item in enumerate(value[first : first + count])}
    return dict(islice(value.items(), first, first + count))
