"""Removes unused chunks: those of a lineage that no row of any of its runs names, directly or through another chunk.

The chunks that rows name are collected first, without a lock. A row saved meanwhile may name a chunk that was found
unused, so the runs of the lineage are locked for the removal, and rows saved since are read too. A writer that comes
later waits, and writes the chunk anew if it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from psycopg.types.numeric import Int8

from checkpoints import crash_points
from checkpoints.layout import rows
from checkpoints.layout.assembly import chunk_references, make_fetcher, unpack_row
from checkpoints.layout.parts import SealedStretch
from checkpoints.postgresql.sql import run_sql
from checkpoints.values.digests import measure_line

PORTION = 500
_MEMBERS = "SELECT id FROM checkpoints_run WHERE id = $1 OR (lineage = $1 AND forked_from IS NOT NULL) ORDER BY id"
_LOCK = f"{_MEMBERS} FOR NO KEY UPDATE"
_STORED = "SELECT digest FROM checkpoints_chunk WHERE lineage = $1"
_DELETE = """
DELETE FROM checkpoints_chunk WHERE lineage = $1 AND digest = ANY($2) RETURNING octet_length(payload)
"""
OVERHEAD = 120  # bytes of a chunk's row and its index entry beside the payload, about


class NamedChunks:
    """The chunks that a lineage's rows name, and up to which row each run was read."""

    def __init__(self, lineage: int) -> None:
        self.lineage = lineage
        self.fetch = make_fetcher(lineage)
        self.named: set[bytes] = set()
        self.upto: dict[int, int] = {}

    def read(self, runs: Iterable[int]) -> None:
        """Add the chunks that the unread rows of these runs name. Raises NotVerified."""
        for run in runs:
            for page in rows.pages(run, self.upto.get(run, 0)):
                self._mark(chunk_references(line for row in page for line in unpack_row(row)[1]))
                self.upto[run] = page[-1].seq

    def _mark(self, lines: set[bytes]) -> None:
        while lines:
            self.named |= {measure_line(line)[0] for line in lines if line[:1] == b"@"}
            stretches = {SealedStretch.of_line(line).digest for line in lines if line[:1] == b"#"} - self.named
            self.named |= stretches
            found = self.fetch(stretches) if stretches else {}
            lines = chunk_references(line for content, _ in found.values() for line in content.split(b"\n"))


def free(lineage: int) -> int:
    """Remove the chunks that nothing names; return the bytes freed. Raises NotVerified if a row cannot be read."""
    stored = [digest for (digest,) in run_sql(_STORED, [Int8(lineage)])]
    if not stored:
        return 0
    marks = NamedChunks(lineage)
    marks.read(_runs(_MEMBERS, lineage))
    useless = [digest for digest in stored if digest not in marks.named]
    freed = 0
    for start in range(0, len(useless), PORTION):
        with transaction.atomic():
            marks.read(_locked(lineage))
            going = [digest for digest in useless[start : start + PORTION] if digest not in marks.named]
            freed += sum(size + OVERHEAD for (size,) in run_sql(_DELETE, [Int8(lineage), going]))
            crash_points.point("prune_chunks", str(lineage))
    return freed


def _locked(lineage: int) -> list[int]:
    """Lock every run of the lineage and return their ids, including forks made while waiting for the lock.

    After that no fork can be made, since a fork locks the run that it begins at.
    """
    members: list[int] = []
    while (found := _runs(_LOCK, lineage)) != members:
        members = found
    return members


def _runs(sql: str, lineage: int) -> list[int]:
    return [run for (run,) in run_sql(sql, [Int8(lineage)])]
