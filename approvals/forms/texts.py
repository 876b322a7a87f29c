"""Converts a value to the text of an input, and back. Pure; ValueError says what to write instead.

A moment is a local time and its offset, so that neither shifts the other. A browser's input shows nothing for a value
that it cannot hold (with a zone, microseconds, a week), so such a value is edited as text. What comes back is compared
as a time, since browsers leave out seconds that are zero.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from approvals.english import count_of
from checkpoints.errors import ValueRefused
from checkpoints.values import artifacts, canonical_json

from .nodes import MISSING

OFFSET = re.compile(r"[Zz]|[+-]\d{2}:?\d{2}|")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(:\d{2})?([Zz]|[+-]\d{2}:?\d{2})?")
_CLOCK = re.compile(r"\d{2}:\d{2}(:\d{2})?")
Time = TypeVar("Time", dt.date, dt.time, dt.datetime)
DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
LONG = 80  # characters beyond which a text gets several lines
UNSEEN = ("Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp")  # categories that a text area shows as nothing
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # line feed and tab can be carried
WORDS = frozenset({"text", "duration", "uuid", "email", "uri", "base64", "secret", "moment"})
LONGEST = 80


def is_date(text: str) -> bool:
    """Tell whether a date input can show it."""
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def is_clock(text: str) -> bool:
    """Tell whether a time input can show it: to the second, without a zone."""
    try:
        dt.time.fromisoformat(text)
    except ValueError:
        return False
    return bool(_CLOCK.fullmatch(text)) and text.isascii()


def split_moment(text: str) -> tuple[str, str] | None:
    """Return (local time, offset) of a moment that a browser's input can show; None for any other."""
    found = _MOMENT.fullmatch(text)
    if found is None or not text.isascii():
        return None
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return f"{found[1]}T{found[2]}{found[3] or ''}", found[4] or ""


def same_clock(text: str, other: str) -> bool:
    """Tell whether two texts give the same time of day, or the same local time."""
    if text == other:
        return True
    try:
        return _local(text) == _local(other)
    except ValueError:
        return False


def join_moment(local: str, offset: str) -> str:
    """Join a moment from its two inputs. Raises ValueError with what to write instead."""
    offset = offset.strip()
    _parsed(dt.datetime, local, "Write a time as 2026-03-31T14:00.")
    if not OFFSET.fullmatch(offset) or not offset.isascii():
        raise ValueError("Write the zone as an offset such as +02:00, as Z, or leave it empty.")
    seconds = "" if local.count(":") > 1 else ":00"
    whole = local + seconds + offset
    _parsed(dt.datetime, whole, "Write a time as 2026-03-31T14:00, and its zone as +02:00.")
    return whole


def _date(text: str) -> str:
    """Read a day. Raises ValueError."""
    return _parsed(dt.date, text, "Write a date as 2026-03-31.").isoformat()


def _clock(text: str) -> str:
    """Read a time of day. Raises ValueError."""
    _parsed(dt.time, text, "Write a time of day as 14:00.")
    return f"{text}:00" if re.fullmatch(r"\d{2}:\d{2}", text) else text


def _moment(text: str) -> str:
    """Read a day and time in one text. Raises ValueError."""
    _parsed(dt.datetime, text, "Write a time as 2026-03-31T14:00:00+00:00.")
    return text


def _parsed(kind: type[Time], text: str, message: str) -> Time:
    """Read a date or a time. Raises ValueError with what to write instead."""
    try:
        return kind.fromisoformat(text)
    except ValueError:
        raise ValueError(message) from None


def _local(text: str) -> dt.datetime | dt.time:
    return dt.datetime.fromisoformat(text) if "T" in text else dt.time.fromisoformat(text)


def shows(kind: str, value: Any) -> bool:
    """Tell whether an input of this kind can show the value."""
    plain = isinstance(value, int) and not isinstance(value, bool)
    if kind in WORDS or kind == "datetime":
        return isinstance(value, str)
    if kind == "decimal":
        return (isinstance(value, str) and bool(DECIMAL.fullmatch(value))) or plain or isinstance(value, float)
    fitting: Mapping[str, bool] = {
        "date": isinstance(value, str) and is_date(value),
        "time": isinstance(value, str) and is_clock(value),
        "integer": plain,
        "number": plain or isinstance(value, float),
        "boolean": isinstance(value, bool),
        "file": artifacts.is_reference(value),
    }
    return fitting.get(kind, False)


def written(kind: str, value: Any) -> str:
    """Write the text that an input of this kind shows."""
    if value is MISSING or kind == "secret" or (value is None and kind != "json"):
        return ""
    if kind == "file":
        return json.dumps(value, sort_keys=True)
    return json.dumps(value, indent=2, ensure_ascii=False) if kind == "json" else option(value)


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
        place = f" at {refused.pointer}" if refused.pointer else ""
        raise ValueError(f"Write JSON: it {refused.reason}{place}.") from None


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
    "date": _date,
    "time": _clock,
    "moment": _moment,
    "base64": _base64,
    "file": _file,
}


def summarise_value(value: Any) -> str:
    """Summarise a value: an object's first plain values, the beginning of a text, or how many items a list has."""
    if value is MISSING:
        return "nothing yet"
    if isinstance(value, dict):
        plain = [
            _words(item) for item in value.values() if not isinstance(item, (dict, list)) and item not in ("", None)
        ]
        return _cut(", ".join(plain[:3])) or count_of(len(value), "field")
    if isinstance(value, list):
        return count_of(len(value), "item")
    return _cut(_words(value))


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value[: LONGEST * 2]
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 300:
        return "a very long number"
    named = {None: "none", True: "yes", False: "no"}
    return named[value] if value is None or isinstance(value, bool) else repr(value)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
