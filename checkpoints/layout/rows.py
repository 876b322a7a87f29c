"""Checkpoint rows as the store reads and writes them, without the ORM: these are the hot statements."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.numeric import Int4, Int8

from checkpoints.layout import payloads
from checkpoints.postgresql import wire
from checkpoints.postgresql.sql import run_sql
from checkpoints.values import digests


class CheckpointRow(NamedTuple):
    """One stored checkpoint, column by column in the table's order."""

    id: UUID
    run_id: int
    plan_id: int
    seq: int
    parent: UUID | None
    parent_digest: bytes | None
    kind: str
    step: str
    next_step: str
    occurrence: int
    attempt: int
    token: int
    input_digest: bytes | None
    code_hash: bytes | None
    at: datetime
    took_us: int
    state_digest: bytes
    digest: bytes
    anchor_seq: int
    codec: int
    payload: bytes
    checksum: bytes

    def header(self) -> list[wire.Value]:
        """Return the columns that `digest` covers, the first seventeen, in PostgreSQL's binary form."""
        return [
            self.id.bytes, wire.int8(self.run_id), wire.int8(self.plan_id), wire.int4(self.seq),
            self.parent.bytes if self.parent else None, self.parent_digest, self.kind.encode(), self.step.encode(),
            self.next_step.encode(), wire.int4(self.occurrence), wire.int2(self.attempt), wire.int8(self.token),
            self.input_digest, self.code_hash, wire.timestamp(self.at), wire.int8(self.took_us), self.state_digest,
        ]  # fmt: skip

    def header_digest(self) -> bytes:
        """Compute the expected `digest`."""
        return digests.of_header(self.header())

    def expected_checksum(self) -> bytes:
        """Compute the expected `checksum`."""
        return payloads.row_checksum(self.digest, self.anchor_seq, self.codec, self.payload)


class Trail(NamedTuple):
    """Rows that a state is read from, and the lineage of their run."""

    lineage: int
    rows: list[CheckpointRow]


COLUMNS = ", ".join(CheckpointRow._fields)
OF_C = ", ".join(f"c.{name}" for name in CheckpointRow._fields)  # of a table that the statement calls c
PAGE = 200  # rows that one statement reads


def new_id() -> UUID:
    """Make a UUIDv7 (RFC 9562), so that ids made at one time are adjacent in the index."""
    ms = time.time_ns() // 1_000_000
    number = ms << 80 | int.from_bytes(os.urandom(10))
    number = number & ~(0xF << 76) | 7 << 76
    return UUID(int=number & ~(0x3 << 62) | 2 << 62)


# The tip's columns as values, not as a join: a plan made while the tables were small joined every row of the run.
_TRAIL = f"""
WITH tip AS MATERIALIZED (
  SELECT (SELECT lineage FROM checkpoints_run r WHERE r.id = run_id) AS lineage, run_id, seq, anchor_seq
  FROM checkpoints_checkpoint WHERE id = $1
)
SELECT (SELECT lineage FROM tip), {OF_C} FROM checkpoints_checkpoint c
WHERE run_id = (SELECT run_id FROM tip)
  AND seq BETWEEN (SELECT anchor_seq FROM tip) AND (SELECT seq FROM tip)
ORDER BY seq
"""  # noqa: S608 - constants
# A head is the newest checkpoint of its own run: any other was put there by somebody else, and has no trail.
_OWN_HEAD = "WHERE (id, run_id, seq) = (SELECT head, id, seq FROM checkpoints_run WHERE id = $1)"
_HEAD_TRAIL = _TRAIL.replace("WHERE id = $1", _OWN_HEAD)
_OF_RUN = f"SELECT {COLUMNS} FROM checkpoints_checkpoint WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT {PAGE}"  # noqa: S608 - constants


def read(sql: str, params: Sequence[Any]) -> list[CheckpointRow]:
    """Return the rows that a statement selects by COLUMNS."""
    return [CheckpointRow._make(row) for row in run_sql(sql, params)]


def trail(checkpoint: UUID) -> Trail:
    """Return the rows from a checkpoint's anchor up to itself."""
    return _trail(_TRAIL, checkpoint)


def head_trail(run_id: int) -> Trail:
    """Return the rows from the anchor of a run's head up to its head; none if that is not its newest checkpoint."""
    return _trail(_HEAD_TRAIL, Int8(run_id))


def _trail(sql: str, which: UUID | Int8) -> Trail:
    found = run_sql(sql, [which])
    return Trail(found[0][0] if found else 0, [CheckpointRow._make(row[1:]) for row in found])


def pages(run_id: int, after: int = 0) -> Iterator[list[CheckpointRow]]:
    """Yield the rows of a run after a number, in order, reading a bounded number per statement.

    Ends at a statement that finds none, not at a short page: a run that is saved to meanwhile is read to its head.
    """
    while found := read(_OF_RUN, [Int8(run_id), Int4(after)]):
        yield found
        after = found[-1].seq
