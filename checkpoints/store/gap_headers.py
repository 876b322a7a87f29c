"""The headers of removed checkpoints, packed: everything that a checkpoint's digest covers, and nothing of its state.

They are stored column by column, in PostgreSQL's binary form, since similar values next to each other compress best. A
column is the length of every value, -1 for NULL, and then the values. Run and number are left out, since they follow
from the position; if the parent is the row before, its two columns are empty.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast
from uuid import UUID

import zstandard

from checkpoints.layout.rows import HEADER, TYPES
from checkpoints.postgresql import wire
from checkpoints.values import digests

from .header import COLUMNS, CheckpointHeader

ID, RUN, SEQ, PARENT, PARENT_DIGEST = map(HEADER.index, ("id", "run_id", "seq", "parent", "parent_digest"))
_STORED = [item for item in range(len(HEADER)) if item not in (RUN, SEQ)]
_TAG = b"holdpoint removed\n"
_LARGEST = 256 * 1024 * 1024

BinaryHeader = Sequence[bytes | None]  # the columns of HEADER, in binary form


class RemovedCheckpoint(NamedTuple):
    """One removed checkpoint: its header and its digest."""

    header: BinaryHeader
    digest: bytes

    @property
    def id(self) -> UUID:
        return UUID(bytes=self.header[ID])

    def decoded(self) -> CheckpointHeader:
        """Return the header as the history of a lineage has it."""
        values: dict[str, Any] = {
            name: None if column is None else TYPES[name].value(column)
            for name, column in zip(HEADER, self.header, strict=True)
            if name in COLUMNS
        }
        return CheckpointHeader(**values, removed=True)


def pack(rows: Sequence[RemovedCheckpoint]) -> bytes:
    """Pack the headers of one stretch of a run, in order."""
    columns = [list(column) for column in zip(*(row.header for row in rows), strict=True)]
    parents, parent_digests = columns[PARENT], columns[PARENT_DIGEST]
    for number, before in enumerate(columns[ID][:-1], start=1):
        if parents[number] == before:
            parents[number] = parent_digests[number] = b""
    made = [struct.pack("!i", len(rows))]
    for column in (columns[item] for item in _STORED):
        try:
            lengths = list(map(len, cast(list[bytes], column)))
        except TypeError:  # of a NULL, which few columns have
            lengths = [-1 if value is None else len(value) for value in column]
        made.append(struct.pack(f"!{len(rows)}i", *lengths))
        made += filter(None, column)
    return zstandard.ZstdCompressor(level=3).compress(b"".join(made))


class _Reader:
    """Reads columns from the front of the bytes. Raises ValueError if they end too early."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def ints(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"!{count}i", self.take(4 * count))

    def take(self, length: int) -> bytes:
        if not 0 <= length <= len(self.content) - self.at:
            raise ValueError("the headers end too early")
        self.at += length
        return self.content[self.at - length : self.at]

    def column(self, count: int) -> list[bytes | None]:
        return [None if length == -1 else self.take(length) for length in self.ints(count)]


def unpack(data: bytes, *, run_id: int, first: int) -> Iterator[RemovedCheckpoint]:
    """Yield the removed checkpoints of a gap that begins at number `first`, in order. Raises ValueError."""
    try:
        reader = _Reader(zstandard.ZstdDecompressor().decompress(data, max_output_size=_LARGEST))
    except zstandard.ZstdError as error:
        raise ValueError(f"bad frame: {error}") from error
    (count,) = reader.ints(1)
    columns = {item: reader.column(count) for item in _STORED}
    run, before = wire.int8(run_id), cast(tuple[bytes | None, bytes | None], (None, None))
    for number in range(count):
        row: list[bytes | None] = [None] * len(HEADER)
        row[RUN], row[SEQ] = run, wire.int4(first + number)
        for item, column in columns.items():
            row[item] = column[number]
        if row[PARENT] == b"":
            row[PARENT], row[PARENT_DIGEST] = before
        digest = digests.of_header(row)
        before = (row[ID], digest)
        yield RemovedCheckpoint(row, digest)


def over(rows: Iterable[RemovedCheckpoint]) -> bytes:
    """Hash the digests of the removed checkpoints, in order."""
    return hashlib.sha256(_TAG + b"".join(row.digest for row in rows)).digest()
