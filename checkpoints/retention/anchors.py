"""Rewrites a remaining row as an anchor, so that it can be read without the row before it.

Only the encoding changes: the state, and with it every digest, stays. The recorded writes of the row's step are kept
beside the manifest, as in every anchor. Later rows still name the anchor that they were saved under; a load begins
with the newest anchor that exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from psycopg.types.numeric import Int2, Int4, Int8

from checkpoints.layout import payloads, rows
from checkpoints.layout.assembly import Assembly, unpack_row
from checkpoints.layout.chunks import ChunkContents, make_fetcher
from checkpoints.layout.payloads import ChunkBlob
from checkpoints.layout.rows import COLUMNS, CheckpointRow
from checkpoints.layout.state_changes import StateChanges
from checkpoints.postgresql.sql import run_sql
from checkpoints.store import save_statements

from .rules import RetentionRow

_ROWS = f"SELECT {COLUMNS} FROM checkpoints_checkpoint WHERE run_id = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq"  # noqa: S608 - constants
_REWRITE = """
UPDATE checkpoints_checkpoint c
SET anchor_seq = c.seq, codec = made.codec, payload = made.payload, checksum = made.checksum
FROM unnest($2::int[], $3::smallint[], $4::bytea[], $5::bytea[]) AS made (seq, codec, payload, checksum)
WHERE c.run_id = $1 AND c.seq = made.seq
"""


class NewAnchor(NamedTuple):
    """A row's new encoding and its chunks."""

    seq: int
    codec: int
    payload: bytes
    checksum: bytes
    blobs: list[ChunkBlob]


def prepared(run_id: int, lineage: int, places: Sequence[RetentionRow], orphans: Sequence[int]) -> list[NewAnchor]:
    """Encode the rows `orphans` anew as anchors, each from its verified state. Raises NotVerified."""
    contents = ChunkContents(make_fetcher(lineage))
    bases = [place.seq for place in places if place.anchor]
    found: list[NewAnchor] = []
    wanted = set(orphans)
    for base, following in zip(bases, [*bases[1:], places[-1].seq + 1], strict=True):
        mine = [seq for seq in orphans if base < seq < following]
        if mine:
            segment = rows.read(_ROWS, [Int8(run_id), Int4(base), Int4(mine[-1])])
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


def write(run_id: int, lineage: int, anchors: Sequence[NewAnchor]) -> None:
    """Store the anchors, in the caller's transaction, under the lock of the run's row."""
    if not anchors:
        return
    if blobs := [blob for anchor in anchors for blob in anchor.blobs]:
        save_statements.insert_chunks(lineage, blobs)
    seqs, codecs = [Int4(anchor.seq) for anchor in anchors], [Int2(anchor.codec) for anchor in anchors]
    content = [[anchor.payload for anchor in anchors], [anchor.checksum for anchor in anchors]]
    run_sql(_REWRITE, [Int8(run_id), seqs, codecs, *content])
