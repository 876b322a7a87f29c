"""JSON Pointers (RFC 6901) into plain values. Pure; values are never changed in place."""

from __future__ import annotations

from typing import Any


class NoSuchPlace(LookupError):
    """The pointer names nothing in this value."""


def tokens(pointer: str) -> list[str]:
    """The reference tokens of a pointer, unescaped. "" is the whole value."""
    if pointer and not pointer.startswith("/"):
        raise NoSuchPlace(f"{pointer!r} is not a JSON Pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def join(pointer: str, *names: str) -> str:
    """The pointer to a place further in."""
    return pointer + "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


def covers(outer: str, inner: str) -> bool:
    """Whether `inner` is the place that `outer` names, or lies in it."""
    return inner == outer or inner.startswith(outer + "/")


def overlaps(one: str, other: str) -> bool:
    """Whether writing at one of the two places can change the other."""
    return covers(one, other) or covers(other, one)


def get(value: Any, pointer: str) -> Any:
    """The value at a pointer. Raises NoSuchPlace."""
    for token in tokens(pointer):
        value = _step(value, token, pointer)
    return value


def put(value: Any, pointer: str, new: Any) -> Any:
    """`value` with `new` at the pointer; containers on the way are copied, the rest is shared.

    The place must exist, but for the last name of an object. Raises NoSuchPlace.
    """
    return _put(value, tokens(pointer), new, pointer)


def _put(value: Any, names: list[str], new: Any, pointer: str) -> Any:
    if not names:
        return new
    head, rest = names[0], names[1:]
    if isinstance(value, dict) and not rest:
        return {**value, head: new}
    inner = _put(_step(value, head, pointer), rest, new, pointer)
    if isinstance(value, dict):
        return {**value, head: inner}
    index = int(head)
    return [*value[:index], inner, *value[index + 1 :]]


def _step(value: Any, token: str, pointer: str) -> Any:
    if isinstance(value, dict) and token in value:
        return value[token]
    if isinstance(value, list) and token.isascii() and token.isdigit() and str(int(token)) == token:
        if int(token) < len(value):
            return value[int(token)]
    raise NoSuchPlace(f"nothing at {pointer}")
