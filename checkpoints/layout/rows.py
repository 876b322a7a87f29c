"""Checkpoint rows as the store reads and writes them, without the ORM: these are the hot statements."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.numeric import Int4, Int8

from checkpoints.postgresql import wire
from checkpoints.postgresql.sql import run_sql
from checkpoints.values import digests


class CheckpointRow(NamedTuple):
    """One stored checkpoint, column by column in the table's order."""

    id: wire.Uuid
    run_id: wire.BigInt
    plan_id: wire.BigInt
    seq: wire.Integer
    parent: wire.Uuid | None
    parent_digest: wire.Bytea | None
    kind: wire.Text
    step: wire.Text
    next_step: wire.Text
    occurrence: wire.Integer
    attempt: wire.SmallInt
    token: wire.BigInt
    input_digest: wire.Bytea | None
    code_hash: wire.Bytea | None
    at: wire.Timestamp
    took_us: wire.BigInt
    state_digest: wire.Bytea
    digest: wire.Bytea  # of the columns above it
    anchor_seq: wire.Integer
    codec: wire.SmallInt
    payload: wire.Bytea
    checksum: wire.Bytea

    def header(self) -> list[wire.Value]:
        """Return the columns that `digest` covers in PostgreSQL's binary form."""
        return [None if value is None else binary(value) for binary, value in zip(_BINARY, self, strict=False)]

    def parameters(self) -> list[Any]:
        """Return the columns with types that do not depend on the values: one prepared statement serves all."""
        return [None if value is None else typed(value) for typed, value in zip(_PARAMETERS, self, strict=True)]

    def header_digest(self) -> bytes:
        """Compute the expected `digest`."""
        return digests.of_header(self.header())


class Trail(NamedTuple):
    """Rows that a state is read from, and the lineage of their run."""

    lineage: int
    rows: list[CheckpointRow]


TYPES = wire.column_types(CheckpointRow)
HEADER = CheckpointRow._fields[: CheckpointRow._fields.index("digest")]  # what `digest` covers, in this order
_BINARY = [TYPES[name].binary for name in HEADER]
_PARAMETERS = [column.parameter for column in TYPES.values()]
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
