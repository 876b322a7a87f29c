"""Converts a value to the text of an input, and back. Pure; ValueError says what to write instead."""

from __future__ import annotations

import base64
import binascii
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from checkpoints.errors import ValueRefused
from checkpoints.values import artifacts, canonical_json

from . import moments
from .nodes import MISSING

DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
LONG = 80  # characters beyond which a text gets several lines
UNSEEN = ("Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp")  # categories that a text area shows as nothing
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # line feed and tab can be carried
WORDS = frozenset({"text", "duration", "uuid", "email", "uri", "base64", "secret", "moment"})


def shows(kind: str, value: Any) -> bool:
    """Tell whether an input of this kind can show the value."""
    plain = isinstance(value, int) and not isinstance(value, bool)
    if kind in WORDS or kind == "datetime":
        return isinstance(value, str)
    if kind == "decimal":
        return (isinstance(value, str) and bool(DECIMAL.fullmatch(value))) or plain or isinstance(value, float)
    fitting: Mapping[str, bool] = {
        "date": isinstance(value, str) and moments.is_date(value),
        "time": isinstance(value, str) and moments.is_clock(value),
        "integer": plain,
        "number": plain or isinstance(value, float),
        "boolean": isinstance(value, bool),
        "file": artifacts.is_reference(value),
    }
    return fitting.get(kind, False)


def written(kind: str, value: Any) -> str:
    """Write the text that an input of this kind shows."""
    if value is MISSING or kind == "secret":
        return ""
    if kind == "file":
        return "" if value is None else json.dumps(value, sort_keys=True)
    if kind == "json":
        return json.dumps(value, indent=2, ensure_ascii=False)
    if value is None:
        return ""
    return option(value)


def as_json(value: Any) -> str:
    """Write a value as JSON for a text area, with every character visible, so that none is overlooked in an edit."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "".join(_escaped(word) if unicodedata.category(word) in UNSEEN and word != "\n" else word for word in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def option(value: Any) -> str:
    """Write one value of an enum as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read(kind: str, text: str) -> Any:
    """Read the value of a text, of any kind but an enum. Raises ValueError."""
    return READERS[kind](text.strip()) if kind in READERS else text


def _json(text: str) -> Any:
    try:
        return canonical_json.parse_json(text)
    except ValueRefused as refused:
        words = (
            f"Write JSON: it {refused.reason} at {refused.pointer}."
            if refused.pointer
            else f"Write JSON: it {refused.reason}."
        )
        raise ValueError(words) from None


def _file(text: str) -> Any:
    try:
        value = canonical_json.parse_json(text)
    except ValueRefused:
        value = None
    if not artifacts.is_reference(value):
        raise ValueError("Choose a file.")
    return value


def _decimal(text: str) -> str:
    try:
        if not DECIMAL.fullmatch(text) or not text.isascii() or not Decimal(text).is_finite():
            raise InvalidOperation
    except InvalidOperation:
        raise ValueError("Write a number with a point, such as 12.50.") from None
    return text


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError("Write a whole number.")
    try:
        return int(text)
    except ValueError:
        raise ValueError("This number has too many digits.") from None


def _number(text: str) -> int | float:
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return _integer(text)
    number = float(_decimal(text))
    if number in (float("inf"), float("-inf")):
        raise ValueError("This number is too large.")
    return number


def _boolean(text: str) -> bool:
    if text in ("true", "on"):
        return True
    if text == "false":
        return False
    raise ValueError("Choose yes or no.")


def _base64(text: str) -> str:
    plain = "".join(text.split())
    try:
        base64.b64decode(plain.replace("-", "+").replace("_", "/") + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("Write base64, or choose a file.") from None
    return plain


READERS: dict[str, Callable[[str], Any]] = {
    "json": _json,
    "decimal": _decimal,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": moments.date,
    "time": moments.clock,
    "moment": moments.moment,
    "base64": _base64,
    "file": _file,
}
