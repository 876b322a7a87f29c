"""The statements that write checkpoints.

A save is one statement: the guard is the update of the run, and everything else is inserted from its result, so that
a failed guard writes nothing. A save costs about one round trip and one commit.

A run's plan is that of its head: a checkpoint may be of another version than the one before it. If it is the same,
updating it costs no index entry and no check of the foreign key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.numeric import Int4, Int8

from checkpoints.actors import Actor
from checkpoints.events import event_proof
from checkpoints.layout import payloads
from checkpoints.layout.payloads import ChunkBlob
from checkpoints.layout.rows import COLUMNS, CheckpointRow
from checkpoints.layout.snapshot import RowDraft
from checkpoints.models import Run, run_status
from checkpoints.postgresql import wire
from checkpoints.postgresql.prepared_rows import build_insertion
from checkpoints.postgresql.sql import Statement, make_storable, run_sql, shift_parameters

from .claims import Claim


class RunMove(NamedTuple):
    """The changes of a save to its run besides the head, and the save's notes and actor."""

    status: str
    reason: str
    wake_at: datetime | None
    notes: Sequence[str]
    actor: Actor


class Along(NamedTuple):
    """Rows of another table that a save writes too, in its statement where that is a step's, else before it.

    `sql` inserts them FROM moved, its parameters numbered from $1; `values` are these in binary form. `apart` writes
    the rows by themselves.
    """

    sql: str
    values: Sequence[wire.Value]
    apart: Callable[[], None]


_ROW = ", ".join(f"${n}" for n in range(1, len(CheckpointRow._fields) + 1))
_CHECKPOINT = f"INSERT INTO checkpoints_checkpoint ({COLUMNS}, proof) SELECT {_ROW}, ${{proof}}"
_SAVED = _CHECKPOINT.format(proof=30)
_FIRST = _CHECKPOINT.format(proof=len(CheckpointRow._fields) + 1)
_CHUNKS = """
INSERT INTO checkpoints_chunk (lineage, digest, codec, payload, checksum)
SELECT {lineage}::bigint, * FROM unnest({0}::bytea[], {1}::int[], {2}::bytea[], {3}::bytea[])
"""
_NOTES = """
INSERT INTO checkpoints_note (run_id, checkpoint, text, by, at)
SELECT $2, $1, note, $28, clock_timestamp() FROM moved, unnest({0}::bytea[]) AS note
"""


@cache
def _statement(stops: bool, chunks: bool, notes: bool) -> str:
    """Build the statement of a save, with parts for chunks and notes if there are some.

    `stops`: the save changes the run's status; otherwise the run goes on.
    """
    sql = [run_status.STOP if stops else run_status.STEP]
    last = 31 if stops else 30
    if chunks:
        names = [f"${last + n}" for n in range(2, 6)]
        insert = _CHUNKS.format(*names, lineage=f"${last + 1}")
        sql.append(f", kept AS ({insert} WHERE EXISTS (SELECT FROM moved) ON CONFLICT DO NOTHING)")
        last += 5
    if notes:
        sql.append(f", noted AS ({_NOTES.format(f'${last + 1}')})")
    return "".join((*sql, _SAVED, " FROM moved RETURNING 1"))


@cache
def _with_along(sql: str) -> str:
    return f"{run_status.STEP}, along AS ({shift_parameters(sql, by=30)}){_SAVED} FROM moved RETURNING 1"


def save(draft: RowDraft, *, claim: Claim, head: UUID, seq: int, move: RunMove, along: Along | None = None) -> bool:
    """Write a checkpoint, its chunks, its event and its run's new position under `claim`.

    Returns False and writes nothing unless the run is at `head` and `seq` and the claim is still valid.
    """
    row, blobs, stops = draft.row, draft.changes.blobs, move.status != "running"
    sql = _statement(stops, bool(blobs), bool(move.notes))
    if not (stops or blobs or move.notes):
        values = _binary(draft, claim, head, seq, move)
        if along:
            saved = wire.run(_with_along(along.sql), [*values, *along.values], meanwhile=draft.snapshot)
        else:
            saved = wire.run(sql, values, meanwhile=draft.snapshot)
        if saved is not None:
            return bool(saved)
    if along:
        along.apart()
    params: list[Any] = [
        *row.parameters(), _reason(move), move.wake_at, float(claim.lease), head, Int4(seq), move.actor.id,
        move.actor.name, event_proof.of_digest(row.digest),
    ]  # fmt: skip
    if stops:
        params.append(move.status)
    if blobs:
        params += [Int8(draft.lineage), *_columns(draft.lineage, blobs)]
    if move.notes:
        params.append([note.encode(errors="replace") for note in move.notes])
    return bool(run_sql(sql, params))


def _reason(move: RunMove) -> str:
    """Return the reason as a text column accepts it: an exception's text may contain what the column refuses."""
    return make_storable(move.reason[:300]) if move.reason else ""


def _binary(draft: RowDraft, claim: Claim, head: UUID, seq: int, move: RunMove) -> list[wire.Value]:
    """Return the parameters of a step's save in PostgreSQL's binary form."""
    row = draft.row
    return [
        *draft.header, row.digest, wire.int4(row.anchor_seq), wire.int2(row.codec), row.payload, row.checksum,
        _reason(move).encode(), wire.timestamp(move.wake_at) if move.wake_at else None, wire.float8(claim.lease),
        head.bytes, wire.int4(seq), move.actor.id.encode(), move.actor.name.encode(),
        event_proof.of_digest(row.digest),
    ]  # fmt: skip


def first_rows(run: Run, draft: RowDraft) -> list[Statement]:
    """Return the statements that write a new run and its first checkpoint; write that one's chunks."""
    if draft.changes.blobs:
        insert_chunks(draft.lineage, draft.changes.blobs)
    return [*build_insertion([run]), (_FIRST, [*draft.row.parameters(), event_proof.of_digest(draft.row.digest)])]


def insert_chunks(lineage: int, blobs: Sequence[ChunkBlob]) -> None:
    """Write the chunks that are not stored yet; in the caller's transaction."""
    run_sql(_CHUNKS.format("$2", "$3", "$4", "$5", lineage="$1") + " ON CONFLICT DO NOTHING",
            [Int8(lineage), *_columns(lineage, blobs)])  # fmt: skip


def _columns(lineage: int, blobs: Sequence[ChunkBlob]) -> list[list[Any]]:
    """Return the chunks' columns as arrays: digest, codec, payload, checksum."""
    unique = {blob.digest: blob for blob in blobs}
    packed = [(digest, *payloads.pack(blob.content, wide=blob.wide)) for digest, blob in unique.items()]
    rows = [(*chunk, payloads.chunk_checksum(lineage, *chunk)) for chunk in packed]
    return [list(column) for column in zip(*rows, strict=True)]
