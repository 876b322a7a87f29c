"""Durations and sizes in words."""

from __future__ import annotations

from datetime import timedelta

_KILO = 1000


def format_duration(span: timedelta) -> str:
    """Return `span` in at most two units: "< 1 ms", "7 ms", "0.4 s", "21 min 38 s", "3 h 5 min"."""
    seconds = max(span.total_seconds(), 0.0)
    if seconds < 0.001:
        return f"< {1} ms"
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, small, small_unit in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit} {rest} {small_unit}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def format_size(count: int) -> str:
    """Return `count` bytes in decimal units: "512 B", "16.9 kB", "3.2 MB"."""
    if count < _KILO:
        return f"{count} B"
    amount = count / _KILO
    if amount < _KILO:
        return f"{amount:.1f} kB"
    return f"{amount / _KILO:.1f} MB"
