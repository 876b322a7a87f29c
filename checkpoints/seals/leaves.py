"""One event as a seal covers it: computes its leaf, and the mark that the seal keeps of it."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from checkpoints.values.canonical_json import encode_canonical

_MARK = struct.Struct("!qq32s20s")


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
