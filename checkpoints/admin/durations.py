"""Form fields for durations as people write them: "2 days", "4 h", "90 min", "1:30"; shown in the same form."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django import forms
from pytimeparse.timeparse import timeparse

LONGEST = timedelta(days=3650)
UNITS = (("day", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
HOW = "Write for example 2 days, 4 h, 90 min or 1:30 (1 hour 30 minutes)."
_MOST = 60  # characters: more is no duration, and costs a parser time
_AND = re.compile(r"\s*\band\b\s*", re.IGNORECASE)


def spell_duration(span: timedelta) -> str:
    """Write a duration to the second: "2 days", "1 h 30 min"."""
    left, parts = int(span.total_seconds()), []
    for name, size in UNITS:
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number} {name}{'s' if name == 'day' and number > 1 else ''}")
    return " ".join(parts) or "0 s"


def parse_duration(words: str) -> timedelta | None:
    """Parse a duration of whole seconds; None for anything else.

    A number without a unit is not a duration: 48 may mean hours or minutes. "1:30" is hours and minutes, as on a clock.
    """
    text = _AND.sub(" ", words.strip())
    seconds = timeparse(text, granularity="minutes") if text.isascii() and len(text) <= _MOST else None
    if seconds is None or seconds != int(seconds) or abs(seconds) > LONGEST.total_seconds() * 2:
        return None
    return timedelta(seconds=int(seconds))


class Duration(forms.CharField):
    """A duration between `least` and ten years; an empty one is None. `unit` is added to a bare number."""

    def __init__(self, *, least: timedelta, too_short: str, unit: str = "", **options: Any) -> None:
        super().__init__(**({"required": False} | options))
        self.least, self.too_short, self.unit = least, too_short, unit

    def prepare_value(self, value: Any) -> Any:
        """Show a stored value as people write it, and typed text unchanged."""
        return spell_duration(value) if isinstance(value, timedelta) else value

    def to_python(self, value: Any) -> Any:
        """Parse the typed text into a timedelta."""
        words = super().to_python(value)
        if not words:
            return None
        span = parse_duration(f"{words} {self.unit}" if self.unit and words.isdigit() else words)
        if span is None:
            raise forms.ValidationError(f"“{words}” is not a duration. {HOW}")
        if span < self.least:
            raise forms.ValidationError(str(self.too_short))
        if span > LONGEST:
            raise forms.ValidationError("That is more than ten years. Leave it empty for no limit.")
        return span


class Days(Duration):
    """A duration in whole days, stored as a number; a bare number means days."""

    def __init__(self, **options: Any) -> None:
        super().__init__(unit="days", **options)

    def prepare_value(self, value: Any) -> Any:
        """Show a number of days with its unit."""
        return super().prepare_value(timedelta(days=value) if isinstance(value, int) else value)

    def to_python(self, value: Any) -> Any:
        """Parse the typed text into a number of days."""
        span = super().to_python(value)
        if span is None:
            return None
        if span % timedelta(days=1):
            raise forms.ValidationError("Write whole days: 90 days, 12 weeks.")
        return span.days
