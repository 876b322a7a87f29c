"""Verifies everything that seals cover, seal by seal, and then the file of exported seals.

A walk takes bounded steps, so that millions of events need no more memory than a few. It may be saved after any step
by `to_json` and continued by another process. It also compares the run heads that seals cover with the checkpoints.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from django.db.models import Max

from checkpoints import crash_points
from checkpoints.audit.sealer import export_path
from checkpoints.errors import ValueRefused
from checkpoints.events.commit_order import Cursor
from checkpoints.events.event_proof import REQUIRED, is_proven, seal_key
from checkpoints.models import Gap, Seal
from checkpoints.postgresql.sql import run_sql
from checkpoints.seals import leaves, merkle
from checkpoints.seals.leaves import ComparisonSources, IntegrityProblem, SealedRow, compare_seal
from checkpoints.seals.seal import SealChain, SealFact, check_exported
from checkpoints.values.canonical_json import decode_canonical

from . import reading
from .covered_rows import CoveredTable, covers
from .removals import Removals

_STORED_HEADS = """
SELECT w.run, w.seq FROM unnest($1::bigint[], $2::int[], $3::bytea[]) AS w (run, seq, digest)
JOIN checkpoints_checkpoint c ON c.run_id = w.run AND c.seq = w.seq AND c.digest = w.digest"""
_TEXTS = "SELECT event_id, salt, text FROM checkpoints_eventtext WHERE event_id = ANY($1)"
_ERASED = """
SELECT kind, subject, version, data, xid, id FROM checkpoints_event WHERE kind = 'text.erased' AND subject = ANY($1)"""
_REQUIRED = """
SELECT xid, id FROM checkpoints_event
WHERE subject = $1 AND NOT (kind = 'checkpoint.saved') ORDER BY xid, id LIMIT 1"""
STEP = 20_000  # events
SOURCES = ComparisonSources(reading.elsewhere, reading.kinds)
NO_KEY = "no key is set (HOLDPOINT_SEAL_KEY): whoever can write the database could make seals and gaps again"


class SealedHead(NamedTuple):
    """A run's head as a seal covers it."""

    run: int
    seq: int
    digest: bytes


def check_heads(seals: Iterable[SealFact], removals: Removals) -> Iterator[IntegrityProblem]:
    """Report sealed heads that are missing; each once, for the first seal that covers it."""
    wanted: dict[SealedHead, int] = {}
    for seal in seals:
        try:
            for head in heads_of(seal):
                wanted.setdefault(head, seal.id)
        except (ValueError, TypeError, AttributeError, ValueRefused):
            yield IntegrityProblem(f"seal {seal.id}", "its heads cannot be read")
    there = stored_heads(list(wanted))
    missing = [head for head in wanted if head not in there]
    pruned, wrong = _pruned(missing, removals)
    for head in missing:
        if head not in pruned:
            why = f"; {wrong[head.run][0]}" if wrong.get(head.run) else ""
            words = f"the head that run {head.run} had, checkpoint {head.seq}, is gone{why}"
            yield IntegrityProblem(f"seal {wanted[head]}", words)


def heads_of(seal: SealFact) -> list[SealedHead]:
    """Return the heads that a seal covers. Raises ValueError, TypeError or AttributeError if they are malformed."""
    values: dict[str, Any] = decode_canonical(seal.heads or b"{}")
    return [SealedHead(int(run), int(seq), bytes.fromhex(digest)) for run, (seq, digest) in values.items()]


def stored_heads(heads: list[SealedHead]) -> set[SealedHead]:
    """Return those of the heads whose checkpoint is stored."""
    if not heads:
        return set()
    found = {(run, seq) for run, seq in run_sql(_STORED_HEADS, [list(column) for column in zip(*heads, strict=True)])}
    return {head for head in heads if (head.run, head.seq) in found}


def _pruned(heads: list[SealedHead], removals: Removals) -> tuple[set[SealedHead], dict[int, list[str]]]:
    """Return the heads that a sound gap accounts for, and by run the faults of the gaps that do not count."""
    runs = Gap.objects.filter(run__in={head.run for head in heads}).values("run_id") if heads else Gap.objects.none()
    newest = dict(runs.annotate(newest=Max("number")).values_list("run_id", "newest"))
    found: set[SealedHead] = set()
    wrong: dict[int, list[str]] = {}
    for head in sorted(heads, key=lambda head: head.run):
        if head.run in newest:
            digests, wrong[head.run] = removals.digests_of(head.run, newest[head.run])
            found |= {head} if head.digest in digests else set()
    return found, wrong


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
        problems += check_heads(found, self.removals)
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


def begin(*, after: int = 0) -> VerificationWalk:
    """Begin a walk over the seals stored now, from the one after `after` on."""
    return VerificationWalk(seal_key(), after, Seal.objects.aggregate(upto=Max("pk"))["upto"] or 0)


def verify(
    *, after: int = 0, exported: Path | None = None, on_step: Callable[[VerificationWalk], object] = id
) -> Iterator[IntegrityProblem]:
    """Yield all problems as they are found. `on_step` is called after each step.

    Raises OSError if `exported` is named and cannot be read.
    """
    walk = begin(after=after)
    while not walk.done:
        yield from walk.step()
        on_step(walk)
    yield from walk.chain.digests()
    yield from exported_seals(exported, since=after)


def exported_seals(exported: Path | None = None, *, since: int = 0) -> Iterator[IntegrityProblem]:
    """Yield where the file of exported seals differs. If no file is named, a missing file is no problem."""
    path = exported or export_path()
    if exported is None and not path.exists():
        return
    with ExitStack() as stack:
        lines = stack.enter_context(path.open(encoding="utf-8", errors="replace"))
        yield from check_exported(lines, _stored, key=seal_key(), name=path.name, since=since)


def total_seals(walk: VerificationWalk) -> int:
    """Return the number of seals that a walk will have checked at its end."""
    return walk.seals + Seal.objects.filter(pk__gt=walk.at, pk__lte=walk.upto).count()


def _stored(ids: list[int]) -> dict[int, bytes]:
    found = Seal.objects.filter(pk__in=ids).values_list("pk", "digest")
    return {pk: bytes(digest) for pk, digest in found}
