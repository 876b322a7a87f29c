"""Computes and formats percentiles."""

from __future__ import annotations

from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float) -> float:
    """Compute the nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]


def spread(name: str, milliseconds: Sequence[float]) -> str:
    """Format one line: name, p50, p99, worst, count."""
    p50, p99 = percentile(milliseconds, 50), percentile(milliseconds, 99)
    return f"{name:<58} p50 {p50:8.2f} ms   p99 {p99:8.2f} ms   max {max(milliseconds):8.2f} ms   n={len(milliseconds)}"
