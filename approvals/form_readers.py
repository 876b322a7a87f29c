"""Reading one posted text as a value of its kind. Pure; ValueError says what to write instead."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from checkpoints import values
from checkpoints.errors import ValueRefused

DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def _json(text: str) -> Any:
    try:
        return values.parse(text)
    except ValueRefused as refused:
        place = f" at {refused.pointer}" if refused.pointer else ""
        raise ValueError(f"Write JSON: it {refused.reason}{place}.") from None


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


def _date(text: str) -> str:
    try:
        return dt.date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError("Write a date as 2026-03-31.") from None


def _datetime(text: str) -> str:
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("Write a time as 2026-03-31T14:00:00+00:00.") from None
    return text


READERS: dict[str, Callable[[str], Any]] = {
    "json": _json,
    "decimal": _decimal,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
    "datetime": _datetime,
}
