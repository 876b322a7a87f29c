"""JSON Pointers (RFC 6901) into plain values. Pure; values are never changed in place."""

from __future__ import annotations

from typing import Any

from checkpoints.errors import ValueRefused
from checkpoints.values import canonical_json, patch


def tokens(pointer: str) -> list[str]:
    """The reference tokens of a pointer, unescaped; "" is the whole value. Raises ValueRefused."""
    return patch.tokens(pointer)


def join(pointer: str, *names: str) -> str:
    """The pointer to a place further in."""
    return pointer + canonical_json.pointer(*names)


def covers(outer: str, inner: str) -> bool:
    """Whether `inner` is the place that `outer` names, or lies in it."""
    return inner == outer or inner.startswith(outer + "/")


def overlaps(one: str, other: str) -> bool:
    """Whether writing at one of the two places can change the other."""
    return covers(one, other) or covers(other, one)


def get(value: Any, pointer: str) -> Any:
    """The value at a pointer. Raises ValueRefused where it names nothing."""
    return patch.find(value, pointer)


def has(value: Any, pointer: str) -> bool:
    """Whether the pointer names something in this value."""
    try:
        patch.find(value, pointer)
    except ValueRefused:
        return False
    return True


def put(value: Any, pointer: str, new: Any) -> Any:
    """`value` with `new` at the pointer: a place that exists, or a new name in an object. Raises ValueRefused."""
    verb = "replace" if has(value, pointer) else "add"
    return patch.apply([{"op": verb, "path": pointer, "value": new}], value)
