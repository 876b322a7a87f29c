"""Canonical JSON: the values that a state may hold, and their only encoding.

A value is what JSON can say: objects with text keys, arrays, text without lone surrogates, integers of any
size, finite doubles, true, false and null. Canonical JSON has sorted keys, no spaces and UTF-8 as it is;
a double keeps its point (`1.0`, `-0.0`), so that types survive. It never holds a raw line break, which
checkpoints.layout.payloads relies upon.

`parse_json` is for text from outside, with the standard library's hooks. orjson keeps the last of two equal keys, turns
2**64 into a double and NaN into null, so it only gets values that `_is_simple` has checked: for those the two
libraries write the same bytes, and orjson is ten times as fast.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from typing import Any

import orjson

from checkpoints.errors import ValueRefused

from .json_pointer import make_pointer

DEPTH_LIMIT = 128
# Values in one text from outside. An empty value, `[]`, takes thirty times its length in memory.
MOST_VALUES = 250_000

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_WIDE = re.compile(rb"[0-9]{19}")
# One that never ends takes all the rest: so each quotation mark is looked at once.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_MANY = 1_000_000  # nodes of one level; a value that holds itself may double with each
_NARROW = range(-(2**63), 2**63)


def encode_canonical(value: Any) -> bytes:
    """Return the canonical JSON of `value`. Raises ValueRefused with the pointer of what cannot be saved."""
    return encode_with_width(value)[0]


def encode_with_width(value: Any) -> tuple[bytes, bool]:
    """Return the canonical JSON of `value`, and whether an integer in it may not fit 64 bits.

    Raises as `encode_canonical` does.
    """
    if _is_simple(value):
        with contextlib.suppress(orjson.JSONEncodeError):  # a lone surrogate; the slow way finds where
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS), False
    try:
        data = _encode(value).encode()
    except (TypeError, ValueError, RecursionError):
        _explain(value)
        raise
    if not _is_plain(value):
        _explain(value)
    return data, _WIDE.search(data) is not None


def decode_canonical(data: bytes, *, wide: bool | None = None) -> Any:
    """Read bytes that `encode_canonical` wrote; a known `wide` saves the search for long integers."""
    if _WIDE.search(data) is not None if wide is None else wide:
        return json.loads(data)
    return orjson.loads(data)


def parse_json(text: str | bytes) -> Any:
    """Read JSON from outside. Raises ValueRefused for what is not JSON, is ambiguous, or cannot be saved."""
    try:
        text = text.decode() if isinstance(text, bytes) else text
        if _count(text) > MOST_VALUES and _count(_STRING.sub("", text)) > MOST_VALUES:
            raise ValueRefused("", f"has more than {MOST_VALUES:,} values; send fewer, or a file")
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=lambda name: _Refused(f"is {name}, which is no JSON"),
            parse_float=_float,
            parse_int=_integer,
        )
    except UnicodeDecodeError as error:
        raise ValueRefused("", f"is not UTF-8 (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise ValueRefused("", f"is not JSON: {error}") from error
    except RecursionError as error:
        raise ValueRefused("", f"is nested deeper than {DEPTH_LIMIT} levels") from error
    encode_canonical(value)
    return value


def _count(text: str) -> int:
    """Compute an upper bound of the number of values in a JSON text: it also counts within strings."""
    return 1 + text.count(",") + text.count("[") + text.count("{")


class _Refused:
    """A placeholder for a value that may not be saved, until its pointer is known."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def _object(pairs: list[tuple[str, Any]]) -> Any:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    seen: set[str] = set()
    twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return _Refused(f"has the key {twice!r} twice")


def _float(text: str) -> Any:
    number = float(text)
    return number if math.isfinite(number) else _Refused("is too large for a double")


def _integer(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return _Refused("is an integer of too many digits")


def _is_simple(value: Any) -> bool:
    """Tell whether orjson writes `value` as the standard library does: plain types, narrow integers, no exponents.

    False also for cycles and deep nesting. One pass over the nodes, level by level.
    """
    level: list[Any] = [value]
    for _ in range(DEPTH_LIMIT + 2):
        below: list[Any] = []
        for node in level:
            kind = type(node)
            if kind is str or node is None or kind is bool:
                continue
            if kind is dict:
                for key in node:
                    if type(key) is not str:
                        return False
                below.extend(node.values())
            elif kind is list:
                below.extend(node)
            elif kind is int:
                if node not in _NARROW:
                    return False
            elif kind is not float or not (node == 0 or 1e-4 <= abs(node) < 1e16):
                return False
        if not below:
            return True
        if len(below) > _MANY:
            return False
        level = below
    return False


def _is_plain(value: Any) -> bool:
    """Tell whether every key is text and the nesting is within bounds. `value` has no cycles by now."""
    level: list[Any] = [value]
    for _ in range(DEPTH_LIMIT + 1):
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                for key, child in node.items():
                    if not isinstance(key, str):
                        return False
                    if isinstance(child, (dict, list, tuple)):
                        below.append(child)
            elif isinstance(node, (list, tuple)):
                below.extend(child for child in node if isinstance(child, (dict, list, tuple)))
        if not below:
            return True
        level = below
    return False


def _explain(value: Any) -> None:
    """Raise ValueRefused for the first faulty node in `value`, depth first."""
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while stack:
        path, node = stack.pop()
        if len(path) > DEPTH_LIMIT:
            raise ValueRefused(make_pointer(*path), f"is nested deeper than {DEPTH_LIMIT} levels, or holds itself")
        reason = _fault(node)
        if reason:
            raise ValueRefused(make_pointer(*path), reason)
        if isinstance(node, dict):
            stack.extend(((*path, key), child) for key, child in reversed(node.items()))
        elif isinstance(node, (list, tuple)):
            stack.extend(((*path, index), node[index]) for index in range(len(node) - 1, -1, -1))


def _fault(node: Any) -> str:
    """Say what is wrong with this node itself; "" if nothing is."""
    if isinstance(node, str):
        return "" if is_utf8(node) else "has a lone surrogate, which is no text"
    if node is None or isinstance(node, (bool, list, tuple)):
        return ""
    if isinstance(node, int):
        try:
            str(int(node))
        except ValueError:
            return "is an integer of too many digits"
        return ""
    if isinstance(node, float):
        return "" if math.isfinite(node) else f"is {float(node)!r}, which JSON cannot say"
    if isinstance(node, dict):
        return _key_fault(node)
    if isinstance(node, _Refused):
        return node.reason
    return f"is a {type(node).__name__}, which JSON cannot say"


def _key_fault(node: dict[Any, Any]) -> str:
    for key in node:
        if not isinstance(key, str):
            return f"has the key {key!r}, which is no text"
        if not is_utf8(key):
            return f"has the key {key!r} with a lone surrogate"
    return ""


def is_utf8(text: str) -> bool:
    """Tell whether a text has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
