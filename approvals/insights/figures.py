"""Counts closed gates: how long decisions took, and how gates ended, by day, agent, policy and risk. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TypeVar

from approvals.models import Outcome

from .closed_gates import CountedGate
from .durations import compute_quantile, count_by_span

KINDS = (  # in the order of the charts
    Outcome.Kind.APPROVED, Outcome.Kind.EDITED, Outcome.Kind.MIXED, Outcome.Kind.ANSWERED, Outcome.Kind.REJECTED,
    Outcome.Kind.EXPIRED, Outcome.Kind.WITHDRAWN,
)  # fmt: skip
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Waits:
    """The times that decisions by people took."""

    number: int
    half: timedelta | None  # the median
    most: timedelta | None  # the 90th percentile
    spread: Mapping[str, int]  # by durations.SPANS


@dataclass(frozen=True)
class DayOfDecisions:
    """The decisions by people of one day, and the gates that expired."""

    day: date
    decided: int
    half: timedelta | None
    most: timedelta | None
    expired: int


def measure_waits(rows: Iterable[CountedGate]) -> Waits:
    """Measure the decisions by people among these gates."""
    seconds = sorted(row.seconds for row in rows if row.by_people)
    return Waits(len(seconds), compute_quantile(seconds, 0.5), compute_quantile(seconds, 0.9), count_by_span(seconds))


def by_day(rows: Iterable[CountedGate], first: date, days: int) -> list[DayOfDecisions]:
    """Return each day of the period, in order, also those on which nothing was decided."""
    of: dict[date, list[CountedGate]] = {first + timedelta(days=number): [] for number in range(days)}
    for row in rows:
        if row.day in of:
            of[row.day].append(row)
    return [_day(day, found) for day, found in of.items()]


def _day(day: date, rows: Sequence[CountedGate]) -> DayOfDecisions:
    took = measure_waits(rows)
    expired = sum(row.kind == Outcome.Kind.EXPIRED for row in rows)
    return DayOfDecisions(day, took.number, took.half, took.most, expired)


def endings(rows: Iterable[CountedGate], key_of: Callable[[CountedGate], Key]) -> dict[Key, Counter[str]]:
    """Count how gates ended, by what `key_of` returns of each; the most frequent first."""
    found: dict[Key, Counter[str]] = {}
    for row in rows:
        found.setdefault(key_of(row), Counter())[row.kind] += 1
    return dict(sorted(found.items(), key=lambda pair: (-pair[1].total(), str(pair[0]))))


def by_rule(rows: Iterable[CountedGate]) -> dict[str, tuple[int, Counter[str]]]:
    """Return, by rule, how many gates it approved by itself, and how people decided those of its sample."""
    found: dict[str, tuple[int, Counter[str]]] = {}
    for row in rows:
        if rule := row.rule:
            alone, sample = found.get(rule, (0, Counter[str]()))
            if row.sampled:
                sample[row.kind] += 1
            found[rule] = (alone + row.by_rule, sample)
    return dict(sorted(found.items(), key=lambda pair: (-pair[1][0], pair[0])))
