"""The read cache: rows and chunks of the store, kept for one reader while it reads.

A page loads several checkpoints of one lineage, and some of them more than once: they build on the same rows and name
the same chunks. Inside `reading` a row and a chunk are fetched once, and those that are `expect`ed in one statement.
Checkpoints never change, so the cache cannot become stale; each state is assembled and verified as in every load.
Outside of `reading` nothing is cached: a worker must notice later damage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import UUID

from checkpoints.errors import NotVerified
from checkpoints.layout.assembly import Assembly, chunk_references, unpack_row
from checkpoints.layout.chunks import ChunkContents, make_fetcher
from checkpoints.layout.rows import OF_C, CheckpointRow
from checkpoints.postgresql.sql import run_sql

_TRAILS = f"""
WITH tips AS (
  SELECT run_id, anchor_seq, max(seq) AS seq FROM checkpoints_checkpoint WHERE id = ANY($1) GROUP BY run_id, anchor_seq
)
SELECT r.lineage, {OF_C} FROM tips JOIN checkpoints_run r ON r.id = tips.run_id
JOIN checkpoints_checkpoint c ON c.run_id = tips.run_id AND c.seq BETWEEN tips.anchor_seq AND tips.seq
ORDER BY c.run_id, c.seq
"""  # noqa: S608 - constants


@dataclass(slots=True)
class ReadCache:
    """Rows, each with all rows back to its anchor, and the chunks that they name."""

    rows: dict[UUID, tuple[int, CheckpointRow]] = field(default_factory=dict)  # by id, with the lineage
    runs: dict[int, dict[int, CheckpointRow]] = field(default_factory=lambda: defaultdict(dict))  # by run and number
    contents: dict[int, ChunkContents] = field(default_factory=dict)
    expected: set[UUID] = field(default_factory=set)

    def fetch(self, id: UUID) -> None:
        """Read the rows of this checkpoint and of all expected ones in one statement.

        Their chunks take as few statements as possible.
        """
        if id in self.rows:
            return
        wanted = [id, *(self.expected - self.rows.keys() - {id})]
        self.expected.clear()
        found: list[CheckpointRow] = []
        for lineage, *columns in run_sql(_TRAILS, [wanted]):
            row = CheckpointRow._make(columns)
            self.rows[row.id] = (lineage, row)
            self.runs[row.run_id][row.seq] = row
            found.append(row)
        if len({(row.run_id, row.anchor_seq) for row in found}) > 1:
            self._collect(found)

    def _collect(self, rows: Iterable[CheckpointRow]) -> None:
        """Fetch the chunks of many rows at once. Failed verification is left to the load that needs the row."""
        lines: dict[int, set[bytes]] = defaultdict(set)
        for row in rows:
            with suppress(NotVerified):
                lines[self.rows[row.id][0]] |= chunk_references(unpack_row(row)[1])
        for lineage, named in lines.items():
            with suppress(NotVerified, ValueError):
                self.contents_of(lineage).collect(named)

    def contents_of(self, lineage: int) -> ChunkContents:
        """Return the chunks of a lineage that were read so far."""
        return self.contents.setdefault(lineage, ChunkContents(make_fetcher(lineage)))

    def assembled(self, id: UUID) -> tuple[int, CheckpointRow, Assembly] | None:
        """Assemble a checkpoint, unchecked; return it with its lineage and row, or None if the id is unknown.

        Raises NotVerified.
        """
        self.fetch(id)
        if id not in self.rows:
            return None
        lineage, row = self.rows[id]
        assembly = Assembly(self.contents_of(lineage))
        # Not by each row's own anchor: pruning may have made a later row an anchor, which then names itself.
        here = self.runs[row.run_id]
        assembly.feed_all(here[seq] for seq in sorted(here) if row.anchor_seq <= seq <= row.seq)
        return lineage, row, assembly


_SHELF: ContextVar[ReadCache | None] = ContextVar("shelf", default=None)


def current() -> ReadCache | None:
    """Return the cache of the current `reading`; None outside of one."""
    return _SHELF.get()


def expect(ids: Iterable[UUID]) -> None:
    """Announce that these checkpoints will be loaded, so that the next load reads them too.

    Does nothing outside of `reading`.
    """
    shelf = current()
    if shelf is not None:
        shelf.expected.update(ids)


@contextmanager
def reading() -> Iterator[None]:
    """Cache what is read from the store inside this block."""
    token = _SHELF.set(ReadCache())
    try:
        yield
    finally:
        _SHELF.reset(token)
