"""Rows that events cover: an event keeps the digests of the rows that its transaction wrote, and seals cover events.

Where a key is set (HOLDPOINT_SEAL_KEY) such an event carries a proof too, an HMAC over all that it says: whoever has
nothing but the application's role may write events, and a proof they cannot.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Model

from checkpoints.errors import NotVerified
from checkpoints.rows import microseconds, run_sql
from checkpoints.values import canonical, decode

from .problem import Problem

ROWS, PROOF = "rows", "proof"
BATCH = 500  # subjects
BEGUN = "audit.covering"  # from then on the rows of everything new are covered
NO_EVENT = "no event recorded it, so Holdpoint did not write it"
UNPROVEN = "is told of without the proof of the key that is set here: somebody wrote that who does not have it"
_TOLD = """
SELECT id, kind, subject, data FROM checkpoints_event
WHERE subject = ANY($1) AND NOT (kind = 'checkpoint.saved') ORDER BY subject, at, id"""
_NEWEST = """
SELECT subject FROM checkpoints_event
WHERE kind = ANY($1) AND subject LIKE $2 AND NOT (kind = 'checkpoint.saved') ORDER BY at DESC, id DESC LIMIT 1"""
_BEGUN = "SELECT kind, subject, data FROM checkpoints_event WHERE kind = $1 ORDER BY at, id LIMIT 1"


def key() -> bytes:
    """The key of seals and proofs; empty where none is set."""
    return str(settings.HOLDPOINT_SEAL_KEY).encode()


def digest(row: Model, columns: Sequence[str], **more: Any) -> str:
    """The digest of these columns of a row, and of what belongs to it, in hex."""
    said = {name: _plain(getattr(row, name)) for name in columns}
    return hashlib.sha256(canonical({**said, **more})).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, datetime):
        return microseconds(value)
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return str(value) if isinstance(value, UUID | str) else value


def proven(kind: str, subject: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """An event's data with its proof, where it covers rows and a key is set."""
    if ROWS not in data or not key():
        return dict(data)
    return {**data, PROOF: _proof(kind, subject, data)}


def holds(kind: str, subject: str, data: Mapping[str, Any]) -> bool:
    """Whether a process with the key wrote this event; True of any where no key is set."""
    said = {name: value for name, value in data.items() if name != PROOF}
    return not key() or hmac.compare_digest(str(data.get(PROOF, "")), _proof(kind, subject, said))


def _proof(kind: str, subject: str, data: Mapping[str, Any]) -> str:
    return hmac.digest(key(), b"holdpoint event\n" + canonical([kind, subject, dict(data)]), "sha256").hex()


class Told(NamedTuple):
    """An event that covers rows."""

    id: int
    kind: str
    subject: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Cover:
    """A table whose rows are subjects of events that cover them.

    `present` gives by number the digests of the rows that there are, by their names; `newest` the greatest number.
    """

    name: str  # as in the subject, "gate"
    present: Callable[[Sequence[int]], dict[int, dict[str, str]]]
    newest: Callable[[], int]
    of_run: Callable[[int], Iterable[int]]

    def check(self, numbers: Sequence[int]) -> list[Problem]:
        """What is wrong with the subjects of these numbers: rows altered, removed or slipped in.

        Events and rows are read one after the other, and something may move in between: only what is wrong twice is.
        """
        wrong = self._wrong(numbers)
        return [problem for found in self._wrong(list(wrong)).values() for problem in found] if wrong else []

    def _wrong(self, numbers: Sequence[int]) -> dict[int, list[Problem]]:
        told, present, before = self._told(numbers), self.present(numbers), begun().get(self.name, 0)
        found = {}
        for number in numbers:
            events = told.get(f"{self.name}:{number}", [])
            if events or number > before:
                found[number] = _compare(f"{self.name}:{number}", events, present.get(number, {}))
        return {number: problems for number, problems in found.items() if problems}

    def _told(self, numbers: Sequence[int]) -> dict[str, list[Told]]:
        found: dict[str, list[Told]] = {}
        for id, kind, subject, data in run_sql(_TOLD, [[f"{self.name}:{number}" for number in numbers]]):
            if b'"rows"' in data and ROWS in (said := decode(data)):
                found.setdefault(subject, []).append(Told(id, kind, subject, said))
        return found


def _compare(subject: str, told: list[Told], present: Mapping[str, str]) -> list[Problem]:
    """What the events of a subject, in order, tell otherwise than its rows; the last word on a row counts."""
    claims = {name: (said, event.id) for event in told for name, said in event.data[ROWS].items()}
    unproven = [event for event in told if not holds(event.kind, subject, event.data)]
    problems = [Problem(f"event {event.id}", f"({event.kind} of {subject}) {UNPROVEN}") for event in unproven]
    for name, said in present.items():
        if name not in claims:
            problems.append(Problem(_named(name, subject), NO_EVENT))
        elif claims[name][0] != said:
            problems.append(Problem(_named(name, subject), f"differs from what event {claims[name][1]} recorded"))
    for name, (_, event) in claims.items():
        if name not in present:
            problems.append(Problem(_named(name, subject), f"is gone; event {event} recorded it"))
    return problems


def _named(name: str, subject: str) -> str:
    kind, _, number = name.partition(":")
    return f"{kind} {number}" if name == subject else f"{kind} {number} ({subject.replace(':', ' ')})"


def begun() -> dict[str, int]:
    """By table, the greatest number that there was before rows were covered; {} where they always were."""
    for kind, subject, data in run_sql(_BEGUN, [BEGUN]):
        said = decode(data)
        if holds(kind, subject, said):
            numbers: dict[str, int] = said[ROWS]
            return numbers
    return {}


def newest(name: str, here: int | None, kinds: Sequence[str]) -> int:
    """The greatest number of a subject: that of the newest row, or that of the newest event which began one."""
    told = run_sql(_NEWEST, [list(kinds), f"{name}:%"])
    number = told[0][0].partition(":")[2] if told else ""
    return max(here or 0, int(number) if number.isascii() and number.isdigit() else 0)


_covers: list[Cover] = []


def register(cover: Cover) -> None:
    """Have a table's rows checked with the seals."""
    _covers[:] = [each for each in _covers if each.name != cover.name] + [cover]


def covers() -> Sequence[Cover]:
    """The tables that are checked."""
    return tuple(_covers)


def check_row(name: str, number: int) -> None:
    """Hold one row against its events before what it says is believed. Raises NotVerified."""
    (cover,) = [each for each in covers() if each.name == name]
    for problem in cover.check([number]):
        raise NotVerified(*problem)


def check_run(run: int) -> list[Problem]:
    """What is wrong with the covered rows of one run."""
    return [problem for cover in covers() for problem in cover.check(list(cover.of_run(run)))]
