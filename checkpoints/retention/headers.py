"""The headers of what a gap removed, as bytes: everything that a checkpoint's digest covers, and nothing of its state.

What follows from the row before is left out: run, number, and the parent where that is the row before. Each other
column is its length and its binary form, as in the table.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import zstandard

from checkpoints import digests, wire
from checkpoints.record import Record

ID, RUN, SEQ, PARENT, PARENT_DIGEST, STATE = 0, 1, 3, 4, 5, 16
_STORED = [0, 2, *range(6, 17)]  # the columns written for every row; the parent's two follow where they must
_MARK = struct.Struct("!B" + "h" * len(_STORED))
_NONE = -1
_FOLLOWS, _PARENT = 0, 1
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_TAG = b"holdpoint removed\n"
_LARGEST = 64 * 1024 * 1024

Header = list[bytes | None]  # the seventeen columns, in binary form


class Removed(NamedTuple):
    """One checkpoint that is gone: its header and the digest that it had."""

    header: Header
    digest: bytes

    @property
    def id(self) -> UUID:
        return UUID(bytes=self.header[ID])

    def record(self) -> Record:
        """The same as the history of a lineage has it."""
        id, run, _, seq, parent, _, kind, step, after, occurrence, attempt, _, given, code, at, took, _ = self.header
        return Record(
            UUID(bytes=id), _int(run), _int(seq), UUID(bytes=parent) if parent else None, _text(kind), _text(step),
            _text(after), _int(occurrence), _int(attempt), given, code, _int(took),
            _EPOCH + timedelta(microseconds=_int(at)), True,
        )  # fmt: skip


def pack(rows: Sequence[Header]) -> bytes:
    """The headers of one stretch of a run, in order."""
    made: list[bytes] = []
    before: Header | None = None
    for row in rows:
        follows = before is not None and row[PARENT] == before[ID]
        columns = [row[each] for each in _STORED]
        made.append(_MARK.pack(_FOLLOWS if follows else _PARENT, *map(_length, columns)))
        made.extend(column for column in columns if column)
        if not follows:
            made.extend((struct.pack("!hh", _length(row[PARENT]), _length(row[PARENT_DIGEST])), row[PARENT] or b""))
            made.append(row[PARENT_DIGEST] or b"")
        before = row
    return zstandard.ZstdCompressor(level=3).compress(b"".join(made))


def unpack(data: bytes, *, run_id: int, first: int) -> Iterator[Removed]:
    """The removed checkpoints of a gap that begins at number `first`, in order. Raises ValueError."""
    try:
        content = zstandard.ZstdDecompressor().decompress(data, max_output_size=_LARGEST)
    except zstandard.ZstdError as error:
        raise ValueError(f"bad frame: {error}") from error
    at, seq, run = 0, first, wire.int8(run_id)
    id = digest = None
    while at < len(content):
        row: Header = [None] * 17
        row[RUN], row[SEQ] = run, wire.int4(seq)
        try:
            mark, *lengths = _MARK.unpack_from(content, at)
            at += _MARK.size
            for column, length in zip(_STORED, lengths, strict=True):
                row[column], at = _taken(content, at, length)
            if mark == _PARENT:
                one, other = struct.unpack_from("!hh", content, at)
                row[PARENT], at = _taken(content, at + 4, one)
                row[PARENT_DIGEST], at = _taken(content, at, other)
            else:
                row[PARENT], row[PARENT_DIGEST] = id, digest
        except struct.error as error:
            raise ValueError(str(error)) from error
        id, digest = row[ID], digests.of_header(row)
        yield Removed(row, digest)
        seq += 1


def over(removed: Sequence[bytes]) -> bytes:
    """The hash over the digests of what was removed, in order."""
    return hashlib.sha256(_TAG + b"".join(removed)).digest()


def _length(column: bytes | None) -> int:
    return _NONE if column is None else len(column)


def _taken(content: bytes, at: int, length: int) -> tuple[bytes | None, int]:
    if length == _NONE:
        return None, at
    if length < 0 or at + length > len(content):
        raise ValueError("the headers end too early")
    return content[at : at + length], at + length


def _int(column: bytes | None) -> int:
    return int.from_bytes(column or b"", signed=True)


def _text(column: bytes | None) -> str:
    return (column or b"").decode()
