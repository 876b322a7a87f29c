"""Measures how long decisions took: quantiles, and the spans by which they are counted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

# Key -> (its words, the time that it ends at; None: no end).
SPANS: dict[str, tuple[str, timedelta | None]] = {
    "5m": ("within 5 min", timedelta(minutes=5)),
    "1h": ("5 min to 1 h", timedelta(hours=1)),
    "8h": ("1 h to 8 h", timedelta(hours=8)),
    "1d": ("8 h to a day", timedelta(days=1)),
    "more": ("longer than a day", None),
}


def span_key(seconds: float) -> str:
    """Return the key of the span that these seconds fall into."""
    return next(key for key, (_, end) in SPANS.items() if end is None or seconds < end.total_seconds())


def count_by_span(seconds: Sequence[float]) -> dict[str, int]:
    """Count the seconds by span, in the order of SPANS."""
    found = dict.fromkeys(SPANS, 0)
    for second in seconds:
        found[span_key(second)] += 1
    return found


def compute_quantile(ordered: Sequence[float], share: float) -> timedelta | None:
    """Return the value that this share of the ordered seconds does not exceed; None of none."""
    if not ordered:
        return None
    return timedelta(seconds=ordered[min(int(share * len(ordered)), len(ordered) - 1)])
