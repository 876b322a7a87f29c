"""Covered rows: an event records the digests of the rows that its transaction wrote, and seals cover events.

A checkpoint is covered by its run's chain, and bears the proof that a process with the key saved it. A save writes
the proof beside its row. Rows from before, and from processes of the release before, have none: once the update is
finished, proven events hold the last number without one of each such run. A row after that needs a proof.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Model, QuerySet
from psycopg.types.numeric import Int4, Int8

from checkpoints.actors import SYSTEM
from checkpoints.errors import NotVerified
from checkpoints.events.event_log import Entry, append_events
from checkpoints.events.event_proof import CHECKPOINTS, ROWS, is_of_digest, is_proven, seal_key
from checkpoints.layout.assembly import name_of_checkpoint
from checkpoints.postgresql.sql import run_sql, to_microseconds
from checkpoints.seals.leaves import IntegrityProblem
from checkpoints.values.canonical_json import decode_canonical, encode_canonical

BATCH = 500  # subjects
NO_EVENT = "no event vouches for it"
UNPROVEN = "is told of without the proof of the key that is set here: somebody wrote that who does not have it"
_TOLD = """
SELECT id, kind, subject, version, data FROM checkpoints_event
WHERE subject = ANY($1) AND NOT (kind = 'checkpoint.saved') ORDER BY subject, version, id"""
_NEWEST = """
SELECT kind, subject, version, data FROM checkpoints_event
WHERE kind = ANY($1) AND subject LIKE $2 AND NOT (kind = 'checkpoint.saved') ORDER BY at DESC, id DESC LIMIT $3"""
NO_PROOF = "bears no proof: somebody wrote it who does not have the key that is set here"
PROOFS_PART = 20_000  # runs that one event holds
PROOFS_PAGE = 5_000  # checkpoints that one statement reads
_WITHOUT = "SELECT run_id, max(seq) FROM checkpoints_checkpoint WHERE proof IS NULL GROUP BY run_id ORDER BY run_id"
_OF_RUN = f"""
SELECT id, seq, digest, proof FROM checkpoints_checkpoint WHERE run_id = $1 AND seq > $2
ORDER BY seq LIMIT {PROOFS_PAGE}"""  # noqa: S608 - a constant


def digest_of_row(row: Model, columns: Sequence[str], **more: Any) -> str:
    """Return the digest of these columns of a row, and of `more`, in hex."""
    values = {name: _plain(getattr(row, name)) for name in columns}
    return hashlib.sha256(encode_canonical({**values, **more})).hexdigest()


def _plain(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, bytes | memoryview):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, datetime):
        return to_microseconds(value)
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return str(value) if isinstance(value, UUID | str) else value


_PLAIN = {str, int, bool, type(None), list}


class CoveringEvent(NamedTuple):
    """An event that records the digests of rows."""

    id: int
    kind: str
    subject: str
    version: int
    data: dict[str, Any]

    @property
    def holds(self) -> bool:
        """Tell whether a process with the key wrote this event."""
        return is_proven(self.kind, self.subject, self.version, self.data)


@dataclass(frozen=True)
class CoveredTable:
    """A table whose rows are subjects of covering events.

    `present` returns, by number, the digests of the existing rows by their names; `begins` are the kinds of the events
    that record a new subject.
    """

    model: type[Model]  # its name is the one in the subject, "gate"; its rows of a run
    present: Callable[[Sequence[int]], dict[int, dict[str, str]]]
    begins: Sequence[str]

    @property
    def name(self) -> str:
        return str(self.model._meta.model_name)

    def check(self, numbers: Sequence[int]) -> list[IntegrityProblem]:
        """Return what is wrong with the subjects of these numbers: rows altered, removed or inserted.

        Events and rows are read one after the other and may change in between: only what is wrong twice is reported.
        """
        wrong = self._wrong(numbers)
        return [problem for found in self._wrong(list(wrong)).values() for problem in found] if wrong else []

    def next(self, number: int) -> Sequence[int]:
        """Return the numbers to check after this one; none if all were checked.

        Up to the newest number that a proven event began: every number, since its rows may be gone. After that: only
        existing rows. So a forged row or event with a huge number does not make a verification endless.
        """
        newest = self._newest()
        if number < newest:
            return range(number + 1, min(number + BATCH, newest) + 1)
        return list(self._numbers().filter(pk__gt=number)[:BATCH])

    def of_run(self, run: int) -> list[int]:
        """List the numbers of a run's rows; none for a table whose rows are of no run."""
        of_runs = any(field.name == "run" for field in self.model._meta.get_fields())
        return list(self._numbers().filter(run=run)) if of_runs else []

    def _numbers(self) -> QuerySet[Model, int]:
        return self.model._default_manager.order_by("pk").values_list("pk", flat=True)

    def _newest(self) -> int:
        """Return the greatest number that a proven event began; 0 if there is none."""
        for most in (1, 1000):
            for kind, subject, version, data in run_sql(_NEWEST, [list(self.begins), f"{self.name}:%", most]):
                number = subject.partition(":")[2]
                if number.isascii() and number.isdigit() and is_proven(kind, subject, version, decode_canonical(data)):
                    return int(number)
        return 0

    def _wrong(self, numbers: Sequence[int]) -> dict[int, list[IntegrityProblem]]:
        result, present = self._events_by_subject(numbers), self.present(numbers)
        found = {}
        for number in numbers:
            subject = f"{self.name}:{number}"
            found[number] = _compare(subject, result.get(subject, []), present.get(number, {}))
        return {number: problems for number, problems in found.items() if problems}

    def _events_by_subject(self, numbers: Sequence[int]) -> dict[str, list[CoveringEvent]]:
        found: dict[str, list[CoveringEvent]] = {}
        for event in covering_events([f"{self.name}:{number}" for number in numbers]):
            found.setdefault(event.subject, []).append(event)
        return found


def covering_events(subjects: Sequence[str]) -> list[CoveringEvent]:
    """Return the covering events of these subjects, by subject, in the order in which they were written."""
    return _covering(run_sql(_TOLD, [list(subjects)]))


def _covering(rows: Iterable[Sequence[Any]]) -> list[CoveringEvent]:
    events = [
        CoveringEvent(id, kind, subject, version, decode_canonical(data))
        for id, kind, subject, version, data in rows
        if data is not None and b'"rows"' in data
    ]
    return [event for event in events if ROWS in event.data]


def claims(events: Sequence[CoveringEvent]) -> dict[str, tuple[str, int]]:
    """Return, by row name, the digest that the last of these events recorded, and the id of that event."""
    return {name: (item, event.id) for event in events for name, item in event.data[ROWS].items()}


def _compare(subject: str, events: Sequence[CoveringEvent], present: Mapping[str, str]) -> list[IntegrityProblem]:
    """Compare a subject's rows with its events, in order; the last event that names a row counts."""
    last, first = claims(events), dict[tuple[str, int], CoveringEvent]()
    problems = []
    for event in events:
        before = first.setdefault((event.kind, event.version), event)
        if not event.holds:
            problems.append(IntegrityProblem(f"event {event.id}", f"({event.kind} of {subject}) {UNPROVEN}"))
        elif before is not event and before.data == event.data:
            problems.append(
                IntegrityProblem(f"event {event.id}", f"({event.kind} of {subject}) repeats event {before.id}")
            )
    for name, word in present.items():
        if name not in last:
            problems.append(IntegrityProblem(_named(name, subject), NO_EVENT))
        elif last[name][0] != word:
            problems.append(
                IntegrityProblem(_named(name, subject), f"differs from what event {last[name][1]} recorded")
            )
    for name, (_, at) in last.items():
        if name not in present:
            problems.append(IntegrityProblem(_named(name, subject), f"is gone; event {at} recorded it"))
    return problems


def _named(name: str, subject: str) -> str:
    kind, _, number = name.partition(":")
    return f"{kind} {number}" if name == subject else f"{kind} {number} ({subject.replace(':', ' ')})"


covers: dict[str, CoveredTable] = {}  # the tables that are checked, by name


def register(cover: CoveredTable) -> None:
    """Have a table's rows verified together with the seals."""
    covers[cover.name] = cover


def check_row(name: str, number: int) -> None:
    """Check one row against its events before its content is relied on. Raises NotVerified."""
    for problem in covers[name].check([number]):
        raise NotVerified(*problem)


def check_locked(subject: str, present: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> None:
    """Check a row against its events, `rows` of the statement that locked it, in order. Raises NotVerified.

    The statement may have waited for another change's lock: it then has the row after it, and no event of it.
    """
    if _compare(subject, _covering(rows), present):
        for problem in _compare(subject, covering_events([subject]), present):
            raise NotVerified(*problem)


def check_run(run: int) -> list[IntegrityProblem]:
    """Return what is wrong with the covered rows of one run."""
    return [problem for cover in covers.values() for problem in cover.check(cover.of_run(run))]


def require_proofs(*, finish: bool) -> None:
    """Let checkpoints count as saved here only with a proof, from now on and for good; those from before are named.

    At the end of an update, since the release before writes none; with the key. Once in a database, whatever key signed
    it: with another key nobody vouches again for what was slipped in meanwhile.
    """
    if not seal_key() or not finish or covering_events([CHECKPOINTS]):
        return
    with transaction.atomic():
        before = [(str(run), seq) for run, seq in run_sql(_WITHOUT, [])]
        parts = [before[at : at + PROOFS_PART] for at in range(0, len(before), PROOFS_PART)] or [[]]
        entries = [
            Entry(kind="seal.checkpoints", subject=CHECKPOINTS, by=SYSTEM, data={ROWS: {}, "unproven": dict(part)})
            for part in parts
        ]
        append_events(entries)


def _last_without() -> dict[str, int] | None:
    """Return the last number without a proof that counts, by run; None where proofs are not required."""
    events = covering_events([CHECKPOINTS]) if seal_key() else []
    parts = [event.data["unproven"] for event in events if event.holds]
    return {run: seq for part in parts for run, seq in part.items()} if events else None


class CheckpointProofs:
    """Checks the proofs of any number of runs."""

    def __init__(self) -> None:
        self.last_without = _last_without()

    def check(self, run: int) -> Iterator[IntegrityProblem]:
        """Yield the run's checkpoints that lack their proof, or bear one of another key; those in a row as one."""
        for fault, group in groupby(self._faults(run), key=itemgetter(0)):
            (_, first, seq), *more = group
            alone = name_of_checkpoint(first, run, seq)
            subject = f"{len(more) + 1:,} checkpoints from {seq} to {more[-1][2]} (run {run})" if more else alone
            yield IntegrityProblem(subject, fault)

    def _faults(self, run: int) -> Iterator[tuple[str, UUID, int]]:
        after = 0
        while found := run_sql(_OF_RUN, [Int8(run), Int4(after)]):
            for id, seq, digest, proof in found:
                if fault := self._fault(run, seq, digest, proof):
                    yield fault, id, seq
            after = found[-1][1]

    def _fault(self, run: int, seq: int, digest: bytes, proof: bytes | None) -> str:
        if proof is not None:
            return "" if is_of_digest(proof, digest) else UNPROVEN
        required = self.last_without is not None and seq > self.last_without.get(str(run), 0)
        return NO_PROOF if required else ""
