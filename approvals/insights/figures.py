"""Counts closed gates: how long decisions took, how gates ended, which fields people edited, and who decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeVar

from django.db import connection

from approvals.models import Outcome
from checkpoints.access.permissions import COMPARE_PEOPLE, teams_where
from checkpoints.values import canonical_json

from .closed_gates import CountedGate, InsightFilters

# Key -> (its words, the time that it ends at; None: no end).
SPANS: dict[str, tuple[str, timedelta | None]] = {
    "5m": ("within 5 min", timedelta(minutes=5)),
    "1h": ("5 min to 1 h", timedelta(hours=1)),
    "8h": ("1 h to 8 h", timedelta(hours=8)),
    "1d": ("8 h to a day", timedelta(days=1)),
    "more": ("longer than a day", None),
}


KINDS = (  # in the order of the charts
    Outcome.Kind.APPROVED, Outcome.Kind.EDITED, Outcome.Kind.MIXED, Outcome.Kind.ANSWERED, Outcome.Kind.REJECTED,
    Outcome.Kind.EXPIRED, Outcome.Kind.WITHDRAWN,
)  # fmt: skip
MOST = 2_000  # edits, the newest ones
_PATCHES = "SELECT gate_id, patch FROM approvals_outcome WHERE gate_id = ANY(%s) AND patch <> %s"
_EDITED = frozenset({Outcome.Kind.EDITED, Outcome.Kind.MIXED})
_DECISIONS = """
SELECT d.user_id, d.gate_id, d.verdict, extract(epoch FROM d.created_at - g.opened_at)::float8
FROM approvals_decision d JOIN approvals_gate g ON g.id = d.gate_id
WHERE d.gate_id = ANY(%s) AND (d.user_id = %s OR g.team_id = ANY(%s))
"""
Key = TypeVar("Key", bound=Hashable)


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


@dataclass(frozen=True)
class Waits:
    """The times that decisions by people took."""

    number: int
    half: timedelta | None  # the median
    most: timedelta | None  # the 90th percentile
    spread: Mapping[str, int]  # by SPANS


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
    by_date: dict[date, list[CountedGate]] = {first + timedelta(days=number): [] for number in range(days)}
    for row in rows:
        if row.day in by_date:
            by_date[row.day].append(row)
    counted: list[DayOfDecisions] = []
    for day, closed in by_date.items():
        took, expired = measure_waits(closed), sum(row.kind == Outcome.Kind.EXPIRED for row in closed)
        counted.append(DayOfDecisions(day, took.number, took.half, took.most, expired))
    return counted


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


def select_part(rows: Iterable[CountedGate], wanted: InsightFilters) -> list[CountedGate]:
    """Keep the rows that one figure counts, but for its field and its person, which other tables hold."""
    return [
        row
        for row in rows
        if wanted.kind in ("", row.kind)
        and (not wanted.within or (row.by_people and wanted.within == span_key(row.seconds)))
        and (not wanted.rule or (wanted.rule == row.rule and wanted.sample == row.sampled))
        and (not wanted.day or wanted.day == row.day.isoformat())
    ]


def count_edited_fields(rows: Iterable[CountedGate]) -> dict[str, list[int]]:
    """Return, by edited field, the ids of the gates in which it was edited; the most frequent first.

    A field is a JSON Pointer into the state, with `*` for each place in a list.
    """
    edited = [row.id for row in rows if row.kind in _EDITED][:MOST]
    found: dict[str, list[int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_PATCHES, [edited, b"[]"])
        for gate, patch in cursor.fetchall():
            for field in sorted(changed_fields(canonical_json.decode_canonical(bytes(patch)))):
                found.setdefault(field, []).append(gate)
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def changed_fields(patch: Collection[dict[str, Any]]) -> set[str]:
    """Return the fields that a JSON Patch changes; a test changes none."""
    paths = [item["path"].split("/") for item in patch if item["op"] != "test"]
    return {"/".join("*" if part == "-" or part.isdigit() else part for part in path) for path in paths}


@dataclass(frozen=True)
class PersonFigures:
    """The decisions of one person."""

    user: int
    gates: frozenset[int]
    verdicts: Counter[str]
    half: timedelta | None  # the median time from a gate's opening to the decision


def comparable_teams(user: Any) -> frozenset[int]:
    """Return the teams in which this person may see figures of others."""
    return frozenset(teams_where(user, COMPARE_PEOPLE).values_list("pk", flat=True))


def count_by_person(rows: Iterable[CountedGate], *, reader: int, teams: Collection[int]) -> list[PersonFigures]:
    """Return what each person decided at these gates: the reader, and others where the gate is of one of `teams`.

    By name they would be a ranking; they are in the order of their ids.
    """
    with connection.cursor() as cursor:
        cursor.execute(_DECISIONS, [[row.id for row in rows], reader, list(teams)])
        decisions = cursor.fetchall()
    figures: list[PersonFigures] = []
    for user in sorted({row[0] for row in decisions}):
        gates, verdicts, seconds = zip(*(row[1:] for row in decisions if row[0] == user), strict=True)
        half = compute_quantile(sorted(seconds), 0.5)
        figures.append(PersonFigures(user, frozenset(gates), Counter(verdicts), half))
    return figures
