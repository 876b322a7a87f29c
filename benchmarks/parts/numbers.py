"""Computes and formats percentiles. Uses only the standard library, as peers run it too."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

Point = dict[str, float]  # checkpoints, save_ms, load_ms
LAST, LOADS = 200, 5  # steps and loads of which a point has the p50


def percentile(values: Sequence[float], percent: float) -> float:
    """Compute the nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]


def spread(name: str, milliseconds: Sequence[float]) -> str:
    """Format one line: name, p50, p99, worst, count."""
    p50, p99 = percentile(milliseconds, 50), percentile(milliseconds, 99)
    return f"{name:<58} p50 {p50:8.2f} ms   p99 {p99:8.2f} ms   max {max(milliseconds):8.2f} ms   n={len(milliseconds)}"


def point(number: int, times: Sequence[float], load: Callable[[], object]) -> Point:
    """Measure loads after so many checkpoints; return their p50 and that of the last steps, which took these times."""
    loads = []
    for _ in range(LOADS):
        began = time.perf_counter()
        load()
        loads.append(time.perf_counter() - began)
    save_ms, load_ms = percentile(times[-LAST:], 50) * 1e3, percentile(loads, 50) * 1e3
    return {"checkpoints": number, "save_ms": save_ms, "load_ms": load_ms}
