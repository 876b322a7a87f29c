"""One event as a seal covers it: its leaf, the mark that the seal keeps of it, and what differs from that now.

A comparison of a seal's marks with the events stored now names each event that differs, and the columns.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from checkpoints.values.canonical_json import encode_canonical

_MARK = struct.Struct("!qq32s20s")
# Columns in words.
WORDS = {
    "at": "its time",
    "run_id": "its run",
    "team_id": "its team",
    "actor_name": "its actor's name",
    "text_digest": "the digest of its text",
}


class IntegrityProblem(NamedTuple):
    """Stored data that is not what was written. `subject` names it: "checkpoint <id>", "seal 7" or "event 12"."""

    subject: str
    reason: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


class SealedRow(NamedTuple):
    """An event's columns. `at` is in microseconds since 1970, None if Python cannot represent the time."""

    id: int
    xid: int
    at: int | None
    kind: str
    run_id: int | None
    team_id: int | None
    subject: str
    version: int
    actor: str
    actor_name: str
    data: bytes
    text_digest: bytes | None

    @property
    def place(self) -> tuple[int, int]:
        """Return its place among events."""
        return self.xid, self.id

    def plain(self) -> list[object]:
        """Return the columns as JSON can express them."""
        digest = None if self.text_digest is None else self.text_digest.hex()
        return [*self[:10], self.data.hex(), digest]


# A mark keeps two bytes of each of these columns, and the place whole.
TAGGED = SealedRow._fields[2:]


class EventMark(NamedTuple):
    """A seal's mark of one event: its place, its leaf, and two bytes for each other column."""

    xid: int
    id: int
    leaf: bytes
    tags: bytes

    @property
    def place(self) -> tuple[int, int]:
        """Return the event's place among events."""
        return self.xid, self.id


def compute_leaf(row: SealedRow) -> bytes:
    """Compute the digest of one event, over all its columns."""
    return hashlib.sha256(b"\0" + encode_canonical(row.plain())).digest()


def tag(column: str, value: object) -> bytes:
    """Compute two bytes that distinguish values of a column. Only the leaf is secure, these are not."""
    return hashlib.sha256(encode_canonical([column, value])).digest()[:2]


def compute_tags(row: SealedRow) -> bytes:
    """Compute the tags of all columns but the place."""
    return b"".join(tag(name, value) for name, value in zip(TAGGED, row.plain()[2:], strict=True))


def differing_columns(mark: EventMark, row: SealedRow) -> list[str]:
    """Return the columns whose tags differ from the mark's."""
    now = compute_tags(row)
    return [name for n, name in enumerate(TAGGED) if now[2 * n : 2 * n + 2] != mark.tags[2 * n : 2 * n + 2]]


def kind_of(mark: EventMark, kinds: Iterable[str]) -> str:
    """Return the kind that the event had, if it is one of `kinds`; else ""."""
    at = 2 * TAGGED.index("kind")
    return next((kind for kind in kinds if tag("kind", kind) == mark.tags[at : at + 2]), "")


def pack(rows: Iterable[SealedRow]) -> bytes:
    """Pack the marks of events for their seal."""
    return b"".join(_MARK.pack(row.xid, row.id, compute_leaf(row), compute_tags(row)) for row in rows)


def unpack(marks: bytes) -> Iterator[EventMark]:
    """Unpack what `pack` made. Raises struct.error if it is cut."""
    return (EventMark._make(fields) for fields in _MARK.iter_unpack(marks))


class ComparisonSources(NamedTuple):
    """Queries that a comparison needs only if something is wrong: events by id anywhere, and the stored kinds."""

    elsewhere: Callable[[Sequence[int]], Mapping[int, SealedRow]]
    kinds: Callable[[], Collection[str]]


NOWHERE = ComparisonSources(lambda ids: {}, lambda: ())


@dataclass
class _Differences:
    altered: list[tuple[EventMark, SealedRow]] = field(default_factory=list)
    missing: list[EventMark] = field(default_factory=list)
    extra: list[SealedRow] = field(default_factory=list)


def compare_seal(
    seal: int, marks: Iterable[EventMark], rows: Iterable[SealedRow], sources: ComparisonSources = NOWHERE
) -> list[IntegrityProblem]:
    """Return what is wrong with the events of one seal; empty if all are as they were sealed.

    `marks` and `rows` are in order of their place.
    """
    found = _walk(marks, rows)
    if not (found.altered or found.missing or found.extra):
        return []
    kinds = sources.kinds()
    extra = {row.id: row for row in found.extra}
    gone = [mark.id for mark in found.missing if mark.id not in extra]
    strays = sources.elsewhere(gone) if gone else {}
    sealed = {mark.tags: mark for mark in (*(mark for mark, _ in found.altered), *found.missing)}
    problems = [_altered(mark, row, sealed, kinds) for mark, row in found.altered]
    for mark in found.missing:
        row = extra.pop(mark.id, None) or strays.get(mark.id)
        problems.append(_removed(seal, mark, kinds) if row is None else _moved(mark, row, kinds))
    return problems + [_slipped_in(seal, row, sealed) for row in extra.values()]


def _walk(marks: Iterable[EventMark], rows: Iterable[SealedRow]) -> _Differences:
    found = _Differences()
    left, right = iter(marks), iter(rows)
    mark, row = next(left, None), next(right, None)
    while mark is not None or row is not None:
        if row is None or (mark is not None and mark.place < row.place):
            assert mark is not None  # noqa: S101 - for the type checker
            found.missing.append(mark)
            mark = next(left, None)
        elif mark is None or row.place < mark.place:
            found.extra.append(row)
            row = next(right, None)
        else:
            if compute_leaf(row) != mark.leaf:
                found.altered.append((mark, row))
            mark, row = next(left, None), next(right, None)
    return found


def _altered(
    mark: EventMark, row: SealedRow, sealed: Mapping[bytes, EventMark], kinds: Collection[str]
) -> IntegrityProblem:
    other = sealed.get(compute_tags(row))
    if other is not None and other.id != mark.id:
        return IntegrityProblem(
            f"event {row.id}", f"was put in another's place: it holds what was sealed as event {other.id}"
        )
    return IntegrityProblem(f"event {row.id}", f"{_was(mark, kinds)}was altered: {_columns(mark, row, kinds)}")


def _moved(mark: EventMark, row: SealedRow, kinds: Collection[str]) -> IntegrityProblem:
    what = f"was moved: it was written by transaction {mark.xid}, and says {row.xid}" if row.xid != mark.xid else ""
    changed = _columns(mark, row, kinds) if differing_columns(mark, row) else ""
    words = " and ".join(part for part in (what, f"was altered: {changed}" if changed else "") if part)
    return IntegrityProblem(f"event {row.id}", _was(mark, kinds) + (words or "stands outside the range of its seal"))


def _removed(seal: int, mark: EventMark, kinds: Collection[str]) -> IntegrityProblem:
    return IntegrityProblem(f"event {mark.id}", f"{_was(mark, kinds)}was removed from seal {seal}")


def _slipped_in(seal: int, row: SealedRow, sealed: Mapping[bytes, EventMark]) -> IntegrityProblem:
    other = sealed.get(compute_tags(row))
    if other is not None:
        return IntegrityProblem(f"event {row.id}", f"({row.kind}) is event {other.id} under another number")
    return IntegrityProblem(
        f"event {row.id}", f"({row.kind}) was slipped in: it lies in the range of seal {seal}, and in no seal"
    )


def _was(mark: EventMark, kinds: Collection[str]) -> str:
    kind = kind_of(mark, kinds)
    return f"({kind}) " if kind else ""


def _columns(mark: EventMark, row: SealedRow, kinds: Collection[str]) -> str:
    names = differing_columns(mark, row)
    if not names:
        return "its content is not what was sealed"
    lines = [WORDS.get(name, f"its {name}") for name in TAGGED if name in names]
    listed = lines[0] if len(lines) == 1 else f"{', '.join(lines[:-1])} and {lines[-1]}"
    return f"{listed} {'is' if len(lines) == 1 else 'are'} not what was sealed"
