"""Counts decisions by person: only one's own, unless the lead of a team has given the permission to compare people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection

from checkpoints.access.permissions import COMPARE_PEOPLE, teams_where

from .closed_gates import CountedGate
from .durations import compute_quantile

_DECISIONS = """
SELECT d.user_id, d.gate_id, d.verdict, extract(epoch FROM d.created_at - g.opened_at)::float8
FROM approvals_decision d JOIN approvals_gate g ON g.id = d.gate_id
WHERE d.gate_id = ANY(%s) AND (d.user_id = %s OR g.team_id = ANY(%s))
"""


@dataclass(frozen=True)
class PersonFigures:
    """The decisions of one person."""

    user: int
    gates: frozenset[int]
    verdicts: Counter[str]
    half: timedelta | None  # the median time from a gate's opening to the decision


def compared(user: Any) -> frozenset[int]:
    """Return the teams in which this person may see figures of others."""
    return frozenset(teams_where(user, COMPARE_PEOPLE).values_list("pk", flat=True))


def decided(rows: Iterable[CountedGate], *, reader: int, teams: Collection[int]) -> list[PersonFigures]:
    """Return what each person decided at these gates: the reader, and others where the gate is of one of `teams`.

    By name they would be a ranking; they are in the order of their ids.
    """
    with connection.cursor() as cursor:
        cursor.execute(_DECISIONS, [[row.id for row in rows], reader, list(teams)])
        found = cursor.fetchall()
    return [_figures(user, [row[1:] for row in found if row[0] == user]) for user in sorted({row[0] for row in found})]


def _figures(user: int, decisions: Collection[tuple[int, str, float]]) -> PersonFigures:
    gates = frozenset(gate for gate, _, _ in decisions)
    seconds = sorted(took for _, _, took in decisions)
    return PersonFigures(user, gates, Counter(verdict for _, verdict, _ in decisions), compute_quantile(seconds, 0.5))
