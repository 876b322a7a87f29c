"""JSON Pointers (RFC 6901) into plain values. Pure; values are never changed in place."""

from __future__ import annotations

import re
from typing import Any

from checkpoints.errors import ValueRefused

INDEX = re.compile(r"0|[1-9][0-9]{0,17}")  # of an item of a list


def make_pointer(*names: str | int) -> str:
    """Return the pointer to the place that a path of names and numbers leads to."""
    return "".join("/" + str(name).replace("~", "~0").replace("/", "~1") for name in names)


def split_pointer(pointer: str) -> list[str]:
    """Return the reference tokens of a pointer, unescaped; "" is the whole value. Raises ValueRefused."""
    if pointer and not pointer.startswith("/"):
        raise ValueRefused(pointer, "is no JSON Pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def join(outer: str, *names: str) -> str:
    """Extend a pointer by more names and numbers."""
    return outer + make_pointer(*names)


def covers_place(outer: str, inner: str) -> bool:
    """Tell whether `inner` is the place of `outer` or within it."""
    return inner == outer or inner.startswith(outer + "/")


def overlaps(place: str, other: str) -> bool:
    """Tell whether writing at one of the two places can change the other."""
    return covers_place(place, other) or covers_place(other, place)


def find_value(value: Any, at: str) -> Any:
    """Return what a pointer names in `value`. Raises ValueRefused if there is nothing."""
    for token in split_pointer(at):
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and INDEX.fullmatch(token) and int(token) < len(value):
            value = value[int(token)]
        else:
            raise ValueRefused(at, "names nothing here")
    return value


def get(value: Any, at: str, default: Any = None) -> Any:
    """Return what a pointer names in `value`, and `default` if there is nothing."""
    try:
        return find_value(value, at)
    except ValueRefused:
        return default


def has_value(value: Any, at: str) -> bool:
    """Tell whether the pointer names something in this value."""
    return get(value, at, INDEX) is not INDEX
