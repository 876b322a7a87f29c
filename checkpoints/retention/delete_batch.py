"""Removes a portion of one run's checkpoints: anchors, rows, gaps and the event in one transaction.

The slow part is read and computed beforehand. Under the lock of the run's row, which a save takes too and which lasts
for moments, only what could have changed is checked: whether there are new holds, and whether the run was moved.
A row saved meanwhile follows the head, and changes nothing about older rows.

Lock order: the line of the prune, then the run's row, then its checkpoints. Making a hold locks the run's row first.

A remaining row that loses the row it builds on is rewritten as an anchor. Only the encoding changes: the state, and
with it every digest, stays. The recorded writes of the row's step are kept beside the manifest, as in every anchor.
Later rows still name the anchor that they were saved under; a load begins with the newest anchor that exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple, cast
from uuid import UUID

import psycopg
from django.db import connection
from psycopg.types.numeric import Int2, Int4, Int8
from psycopg.types.string import ByteaBinaryLoader

from checkpoints import crash_points
from checkpoints.errors import NotVerified
from checkpoints.events import event_log
from checkpoints.layout import payloads, rows
from checkpoints.layout.assembly import Assembly, ChunkContents, make_fetcher, unpack_row
from checkpoints.layout.parts import StateChanges
from checkpoints.layout.payloads import ChunkBlob
from checkpoints.layout.rows import COLUMNS, HEADER, CheckpointRow
from checkpoints.models import Gap, Run
from checkpoints.postgresql.prepared_rows import insert_rows
from checkpoints.postgresql.sql import run_sql
from checkpoints.store import gaps, save_statements
from checkpoints.store.gaps import ID, RemovalReason, RemovedCheckpoint
from checkpoints.values import digests

from . import reading, rules
from .rules import RetentionHistory, RetentionRow

_SEGMENT = f"SELECT {COLUMNS} FROM checkpoints_checkpoint WHERE run_id = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq"  # noqa: S608 - constants
_REWRITE = """
UPDATE checkpoints_checkpoint c
SET anchor_seq = c.seq, codec = made.codec, payload = made.payload, checksum = made.checksum
FROM unnest($2::int[], $3::smallint[], $4::bytea[], $5::bytea[]) AS made (seq, codec, payload, checksum)
WHERE c.run_id = $1 AND c.seq = made.seq
"""
_HEADERS = f"""
SELECT {", ".join(f"c.{name}" for name in HEADER)}, c.digest, octet_length(c.payload)
FROM unnest($2::int[], $3::int[]) AS going (first, last)
JOIN checkpoints_checkpoint c ON c.run_id = $1 AND c.seq BETWEEN going.first AND going.last ORDER BY c.seq
"""  # noqa: S608 - constants
_LOCK = "SELECT uuid_send(head), seq, status, team_id FROM checkpoints_run WHERE id = $1 FOR NO KEY UPDATE"
# A separate statement: the one that waits for the lock sees other tables as they were before it waited.
_NOW = f"""
SELECT clock_timestamp(), newest.number, newest.digest, held.id, held.checkpoint FROM (VALUES (1)) AS one
LEFT JOIN (SELECT number, digest FROM checkpoints_gap WHERE run_id = $1 ORDER BY number DESC LIMIT 1) AS newest ON true
LEFT JOIN ({reading.HOLDS}) AS held (id, checkpoint) ON true
"""  # noqa: S608 - constants
_FOLLOWS = """
SELECT count(*) FROM (
  SELECT kind, parent, lag(id, 1, $3::uuid) OVER (ORDER BY seq) AS before
  FROM checkpoints_checkpoint WHERE run_id = $1 AND seq > $2
) AS since WHERE parent IS DISTINCT FROM before OR kind = ANY($4)
"""
_REMOVE = """
WITH gone AS (
  DELETE FROM checkpoints_checkpoint c USING unnest($2::int[], $3::int[]) AS going (first, last)
  WHERE c.run_id = $1 AND c.seq BETWEEN going.first AND going.last
  RETURNING c.id
), unsaid AS (
  DELETE FROM checkpoints_note n USING gone WHERE n.run_id = $1 AND n.checkpoint = gone.id
)
SELECT count(*) FROM gone
"""
Ids = Callable[[], list[UUID]]
Companion = Callable[[int, Ids], None]
_companions: list[Companion] = []


class NewAnchor(NamedTuple):
    """A row's new encoding and its chunks."""

    seq: int
    codec: int
    payload: bytes
    checksum: bytes
    blobs: list[ChunkBlob]


def prepare_anchors(
    run_id: int, lineage: int, places: Sequence[RetentionRow], orphans: Sequence[int]
) -> list[NewAnchor]:
    """Encode the rows `orphans` anew as anchors, each from its verified state. Raises NotVerified."""
    contents = ChunkContents(make_fetcher(lineage))
    bases = [place.seq for place in places if place.anchor]
    found: list[NewAnchor] = []
    wanted = set(orphans)
    for base, following in zip(bases, [*bases[1:], places[-1].seq + 1], strict=True):
        mine = [seq for seq in orphans if base < seq < following]
        if mine:
            segment = rows.read(_SEGMENT, [Int8(run_id), Int4(base), Int4(mine[-1])])
            found += _of_segment(segment, contents, wanted)
    return found


def _of_segment(segment: Sequence[CheckpointRow], contents: ChunkContents, wanted: set[int]) -> list[NewAnchor]:
    assembly, made, left = Assembly(contents), [], list[CheckpointRow]()
    for row in segment:
        left.append(row)
        if row.seq in wanted:
            assembly.feed_all(left)
            left = []
            made.append(_new_anchor(row, assembly))
    return made


def _new_anchor(row: CheckpointRow, assembly: Assembly) -> NewAnchor:
    ops, lines = unpack_row(row)
    changes = StateChanges({}, assembly.check(), assembly.list_format, ops, lines, wide=bool(row.codec & payloads.WIDE))
    changes.seal(record=row.input_digest is not None)
    codec, payload = payloads.pack(payloads.join(changes.ops, changes.lines), wide=changes.wide or assembly.wide)
    codec |= assembly.list_format.CODEC
    return NewAnchor(
        row.seq, codec, payload, payloads.row_checksum(row.digest, row.seq, codec, payload), changes.blobs
    )  # fmt: skip


def write_anchors(run_id: int, lineage: int, anchors: Sequence[NewAnchor]) -> None:
    """Store the anchors, in the caller's transaction, under the lock of the run's row."""
    if not anchors:
        return
    if blobs := [blob for anchor in anchors for blob in anchor.blobs]:
        save_statements.insert_chunks(lineage, blobs)
    seqs, codecs = [Int4(anchor.seq) for anchor in anchors], [Int2(anchor.codec) for anchor in anchors]
    content = [[anchor.payload for anchor in anchors], [anchor.checksum for anchor in anchors]]
    run_sql(_REWRITE, [Int8(run_id), seqs, codecs, *content])


def along(companion: Companion) -> None:
    """Register `companion(run_id, ids)`, which removes what belongs to removed checkpoints, in the same transaction.

    `ids()` returns the removed checkpoints' ids: a function, since most runs have nothing that belongs to them.
    """
    _companions.append(companion)


class RunMoved(Exception):
    """The run was moved, or something of it was held, since it was read: read it again."""


@dataclass(frozen=True)
class RemovalPortion:
    """Checkpoints to remove in one transaction: their rows by stretch, and the new anchors."""

    run_id: int
    lineage: int
    history: RetentionHistory  # the run's when it was read
    stretches: Sequence[tuple[int, int]]
    rows: Sequence[RemovedCheckpoint]
    anchors: Sequence[NewAnchor]
    size: int


def prepared(run_id: int, lineage: int, history: RetentionHistory, seqs: Sequence[int]) -> RemovalPortion:
    """Read and compute what the removal of these rows needs. Raises NotVerified for an altered row, and RunMoved."""
    ranges = rules.stretches(seqs)
    rows, size = _rows(run_id, ranges)
    if len(rows) != len(seqs):
        raise RunMoved
    for row in rows:
        if digests.of_header(row.header) != row.digest:
            raise NotVerified(f"checkpoint {row.id} (run {run_id})", "does not match its digest")
    made = prepare_anchors(run_id, lineage, history.places, rules.orphans(history.places, seqs))
    return RemovalPortion(run_id, lineage, history, ranges, rows, made, size)


def remove(portion: RemovalPortion, *, why: RemovalReason) -> int:
    """Remove a portion, in the caller's transaction; return the bytes freed. Raises RunMoved."""
    run_id = portion.run_id
    team, at, before = _check(portion)
    write_anchors(run_id, portion.lineage, portion.anchors)
    columns = [Int8(run_id), *([Int4(item) for item in side] for side in zip(*portion.stretches, strict=True))]
    if run_sql(_REMOVE, columns)[0][0] != len(portion.rows):
        raise RunMoved
    crash_points.point("prune_removed", str(run_id))
    made = _leave(portion, why._replace(at=at), Run(pk=run_id, team_id=team), before)
    for companion in _companions:
        companion(run_id, lambda: [row.id for row in portion.rows])
    grown = sum(len(anchor.payload) for anchor in portion.anchors) + sum(len(gap.headers) for gap in made)
    return portion.size - grown


def _check(portion: RemovalPortion) -> tuple[int, datetime, Gap | None]:
    """Lock the run; return its team, the time, and its newest gap with the columns that the next gap needs.

    Raises RunMoved if the run was moved or held, or became live again, since it was read.
    """
    [(head, seq, status, team)] = run_sql(_LOCK, [Int8(portion.run_id)])
    if (status in Run.LIVE) and not portion.history.live:
        raise RunMoved
    found = run_sql(_NOW, [Int8(portion.run_id)])
    at, number, digest = found[0][:3]
    held = {checkpoint for *_, hold, checkpoint in found if hold is not None}
    if held and (None in held or any(row.header[ID] in held for row in portion.rows)):
        raise RunMoved
    # Rows saved since follow the old head, one after the other; otherwise the run was moved.
    history = portion.history
    if (seq, head) != (history.places[-1].seq, history.head) and _moved(portion.run_id, history):
        raise RunMoved
    return team, at, None if number is None else Gap(run_id=portion.run_id, number=number, digest=digest)


def _moved(run_id: int, history: RetentionHistory) -> bool:
    head = UUID(bytes=history.head) if history.head else None
    params = [Int8(run_id), Int4(history.places[-1].seq), head, list(rules.BY_HAND)]
    return bool(run_sql(_FOLLOWS, params)[0][0])


def _leave(portion: RemovalPortion, why: RemovalReason, run: Run, before: Gap | None) -> list[Gap]:
    """Write a gap for each stretch, chained to the run's newest gap, and the event that names the last."""
    made: list[Gap] = []
    rows = iter(portion.rows)
    for first, last in portion.stretches:
        before = gaps.make_gap(portion.run_id, first, list(islice(rows, last - first + 1)), before, why)
        made.append(before)
    insert_rows(made)
    data = {
        "first": made[0].first_seq, "last": made[-1].last_seq, "count": len(portion.rows), "policy": why.policy,
        "version": why.version, "gap": made[-1].number, "digest": made[-1].digest.hex(),
    }  # fmt: skip
    event_log.record("retention.pruned", subject=f"run:{run.pk}", by=why.by, run=run, data=data)
    return made


def _rows(run_id: int, ranges: Sequence[tuple[int, int]]) -> tuple[list[RemovedCheckpoint], int]:
    """Return headers with their digests, as the database sends them, and roughly the bytes that the rows occupy."""
    firsts, lasts = [Int4(first) for first, _ in ranges], [Int4(last) for _, last in ranges]
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.RawCursor(cast(Any, connection.connection)) as cursor:
        for kind in ("uuid", "int8", "int4", "int2", "varchar", "timestamptz"):
            cursor.adapters.register_loader(kind, ByteaBinaryLoader)
        cursor.execute(_HEADERS.encode(), [Int8(run_id), firsts, lasts], prepare=True, binary=True)
        found, upto = cursor.fetchall(), len(HEADER)
    size = sum(int.from_bytes(row[-1]) + reading.ROW for row in found)
    return [RemovedCheckpoint(row[:upto], row[upto]) for row in found], size
