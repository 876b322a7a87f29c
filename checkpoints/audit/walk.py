"""Verifies the database seal by seal, in bounded steps, so that millions of events need no more memory than a few.

A walk may be saved after any step by `to_json` and continued by another process.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkpoints import crash_points
from checkpoints.events.commit_order import Cursor
from checkpoints.events.event_proof import REQUIRED, is_proven
from checkpoints.postgresql.sql import run_sql
from checkpoints.seals import leaves, merkle
from checkpoints.seals.chain import SealChain
from checkpoints.seals.compare import ComparisonSources, compare_seal
from checkpoints.seals.leaves import SealedRow
from checkpoints.seals.problem import IntegrityProblem
from checkpoints.seals.seal import SealFact
from checkpoints.values.canonical_json import decode_canonical

from . import heads, reading
from .covered_rows import CoveredTable, covers
from .removals import Removals

_TEXTS = "SELECT event_id, salt, text FROM checkpoints_eventtext WHERE event_id = ANY($1)"
_ERASED = """
SELECT kind, subject, version, data, xid, id FROM checkpoints_event WHERE kind = 'text.erased' AND subject = ANY($1)"""
_REQUIRED = """
SELECT xid, id FROM checkpoints_event
WHERE subject = $1 AND NOT (kind = 'checkpoint.saved') ORDER BY xid, id LIMIT 1"""
STEP = 20_000  # events
SOURCES = ComparisonSources(reading.elsewhere, reading.kinds)


@dataclass
class VerificationWalk:
    """The progress of a verification: `at` is the last seal that was checked, `upto` the last to check."""

    key: bytes
    at: int
    upto: int
    seals: int = 0
    events: int = 0
    texts: int = 0
    erased: int = 0  # missing texts whose erasure was ordered, as the audit shows
    wrong: list[tuple[int, int, str]] = field(default_factory=list)
    covered: dict[str, int] = field(default_factory=dict)  # by table, the last number whose rows were checked

    def __post_init__(self) -> None:
        before = reading.seal_before(self.at + 1)
        self.chain = SealChain(self.key, before if self.at else None, wrong=self.wrong)
        self.removals = Removals()

    @property
    def done(self) -> bool:
        """Tell whether every seal and every covered row was checked."""
        return self.at >= self.upto and not any(self._next())

    def step(self, *, events: int = STEP) -> list[IntegrityProblem]:
        """Check the next seals, of about `events` events, or after the last seal the next rows; return the problems."""
        if self.at >= self.upto:
            return self._rows()
        found = reading.seals(self.at, self.upto, events=events)
        if not found:
            self.at = self.upto
            return []
        begin = self.chain.before.last if self.chain.before else Cursor()
        ahead = reading.RowStream(reading.events(begin, found[-1].last))
        problems: list[IntegrityProblem] = []
        for seal in found:
            problems += self.chain.follow(seal)
            rows = list(ahead.until(seal.last))
            problems += check_seal(seal, rows, SOURCES)
            problems += self._texts(rows)
            self.events += len(rows)
        problems += heads.check(found, self.removals)
        self.seals += len(found)
        self.at = found[-1].id
        crash_points.point(crash_points.OF_AUDITS)
        return problems

    def _rows(self) -> list[IntegrityProblem]:
        """Check the next covered rows."""
        for cover, numbers in self._next():
            self.covered[cover.name] = numbers[-1]
            return cover.check(numbers)
        return []

    def _next(self) -> Iterator[tuple[CoveredTable, Sequence[int]]]:
        """Yield the numbers of the next rows to check, for each table that has some."""
        for cover in covers.values():
            if numbers := cover.next(self.covered.get(cover.name, 0)):
                yield cover, numbers

    def _texts(self, rows: list[SealedRow]) -> Iterator[IntegrityProblem]:
        """Report texts that were altered, or are missing without an order; count present and erased ones."""
        digests = {row.id: row.text_digest for row in rows}
        there = run_sql(_TEXTS, [list(digests)]) if rows else []
        for event, salt, text in there:
            if hashlib.sha256(salt + text).digest() != digests[event]:
                yield IntegrityProblem(f"event {event}", f"the text of event {event} is not what was written")
        gone = {event for event, digest in digests.items() if digest is not None} - {event for event, *_ in there}
        subjects = {f"event:{event}": event for event in gone}
        ordered = {subjects[subject] for subject in _erased(list(subjects))} if gone else set()
        for event in sorted(gone - ordered):
            words = f"the text of event {event} is gone, and no proven order to erase it is in the audit"
            yield IntegrityProblem(f"event {event}", words)
        self.texts += len(there)
        self.erased += len(ordered)

    def to_json(self) -> dict[str, Any]:
        """Return the progress as data, from which another process can continue."""
        names = ("at", "upto", "seals", "events", "texts", "erased", "covered")
        return {name: getattr(self, name) for name in names} | {"wrong": [list(row) for row in self.wrong]}

    @classmethod
    def from_json(cls, values: dict[str, Any], *, key: bytes) -> VerificationWalk:
        """Continue a walk that `to_json` saved."""
        return cls(key, **values | {"wrong": [tuple(item) for item in values["wrong"]]})


def _erased(subjects: list[str]) -> set[str]:
    """Return those of the events whose erasure somebody with the key ordered.

    Orders from before proofs were required count too. The first event that requires them counts, whatever key signed
    it: a forged one after it changes nothing.
    """
    since = next((Cursor(xid, id) for xid, id in run_sql(_REQUIRED, [REQUIRED])), None)
    orders = run_sql(_ERASED, [subjects])
    return {event[1] for *event, xid, id in orders if since is None or Cursor(xid, id) < since or _holds(event)}


def _holds(event: Sequence[Any]) -> bool:
    kind, subject, version, data = event
    return is_proven(kind, subject, version, decode_canonical(data))


def check_seal(seal: SealFact, rows: list[SealedRow], sources: ComparisonSources) -> list[IntegrityProblem]:
    """Check one seal against the events in its range."""
    name, marks = f"seal {seal.id}", _marks(seal)
    if marks is not None:
        return compare_seal(seal.id, marks, rows, sources)
    problems = [IntegrityProblem(name, "its root and what is kept of its events beside it do not agree")]
    if len(rows) != seal.count:
        problems.append(IntegrityProblem(name, f"sealed {seal.count} events, there are {len(rows)}"))
    elif rows and merkle.root([leaves.compute_leaf(row) for row in rows]) != seal.root:
        problems.append(
            IntegrityProblem(name, f"an event between {rows[0].id} and {rows[-1].id} is not what was sealed")
        )
    return problems


def _marks(seal: SealFact) -> list[leaves.EventMark] | None:
    """Return the marks of a seal; None if its root does not cover them."""
    try:
        marks = list(leaves.unpack(seal.marks or b""))
    except struct.error:
        return None
    return marks if marks and merkle.root([mark.leaf for mark in marks]) == seal.root else None
