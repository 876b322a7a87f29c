"""Converts days and times for a browser's inputs without a shift: a moment is a local time and its offset. Pure.

A browser's input shows nothing for a value that it cannot hold (with a zone, microseconds, a week), so such a value is
edited as text. What comes back is compared as a time, since browsers leave out seconds that are zero.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TypeVar

OFFSET = re.compile(r"[Zz]|[+-]\d{2}:?\d{2}|")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(:\d{2})?([Zz]|[+-]\d{2}:?\d{2})?")
_CLOCK = re.compile(r"\d{2}:\d{2}(:\d{2})?")
Time = TypeVar("Time", dt.date, dt.time, dt.datetime)


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


def parts(text: str) -> tuple[str, str] | None:
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


def joined(local: str, offset: str) -> str:
    """Join a moment from its two inputs. Raises ValueError with what to write instead."""
    offset = offset.strip()
    _parsed(dt.datetime, local, "Write a time as 2026-03-31T14:00.")
    if not OFFSET.fullmatch(offset) or not offset.isascii():
        raise ValueError("Write the zone as an offset such as +02:00, as Z, or leave it empty.")
    seconds = "" if local.count(":") > 1 else ":00"
    whole = local + seconds + offset
    _parsed(dt.datetime, whole, "Write a time as 2026-03-31T14:00, and its zone as +02:00.")
    return whole


def date(text: str) -> str:
    """Read a day. Raises ValueError."""
    return _parsed(dt.date, text, "Write a date as 2026-03-31.").isoformat()


def clock(text: str) -> str:
    """Read a time of day. Raises ValueError."""
    _parsed(dt.time, text, "Write a time of day as 14:00.")
    return f"{text}:00" if re.fullmatch(r"\d{2}:\d{2}", text) else text


def moment(text: str) -> str:
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
