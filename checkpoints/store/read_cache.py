"""What one reader has read of the store, kept for as long as it reads.

A page looks at several checkpoints of one lineage, and at some of them more than once: they build on the same rows
and name the same chunks. Inside `reading` a row and a chunk are fetched once, and those that are
`expect`ed in one statement. Checkpoints never change, so what is kept cannot grow stale; each state is put
together and verified as every load is. Outside of `reading` nothing is kept: a worker must find what was damaged since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import UUID

from checkpoints.errors import NotVerified
from checkpoints.layout.assembly import Assembly, references, unpack
from checkpoints.layout.chunks import ChunkContents, fetcher
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
    """Rows, from an anchor to what builds on it without a gap, and the chunks that they name."""

    rows: dict[UUID, tuple[int, CheckpointRow]] = field(default_factory=dict)  # by id, with the lineage
    runs: dict[int, dict[int, CheckpointRow]] = field(default_factory=lambda: defaultdict(dict))  # by run and number
    contents: dict[int, ChunkContents] = field(default_factory=dict)
    expected: set[UUID] = field(default_factory=set)

    def fetch(self, id: UUID) -> None:
        """Read what this checkpoint builds on, and those that are expected, all in one statement.

        Their chunks come in as few as can be.
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
        """Fetch the chunks of many rows at once. What does not verify is left to the load that needs it."""
        lines: dict[int, set[bytes]] = defaultdict(set)
        for row in rows:
            with suppress(NotVerified):
                lines[self.rows[row.id][0]] |= references(unpack(row)[1])
        for lineage, named in lines.items():
            with suppress(NotVerified, ValueError):
                self.contents_of(lineage).collect(named)

    def contents_of(self, lineage: int) -> ChunkContents:
        """Return the chunks of a lineage that were read so far."""
        return self.contents.setdefault(lineage, ChunkContents(fetcher(lineage)))

    def assembled(self, id: UUID) -> tuple[int, CheckpointRow, Assembly] | None:
        """Put a checkpoint together, unchecked, and return it with its lineage; None where there is none of that id.

        Raises NotVerified.
        """
        self.fetch(id)
        if id not in self.rows:
            return None
        lineage, row = self.rows[id]
        assembly = Assembly(self.contents_of(lineage))
        # Not by the anchor that a row names: pruning may have made a later one, which names itself, the anchor.
        here = self.runs[row.run_id]
        assembly.feed_all(here[seq] for seq in sorted(here) if row.anchor_seq <= seq <= row.seq)
        return lineage, row, assembly


_SHELF: ContextVar[ReadCache | None] = ContextVar("shelf", default=None)


def current() -> ReadCache | None:
    """Return the cache of the reading under way; None outside of `reading`."""
    return _SHELF.get()


def expect(ids: Iterable[UUID]) -> None:
    """Announce that these checkpoints will be loaded: the next load reads them with its own.

    Does nothing outside of `reading`.
    """
    shelf = current()
    if shelf is not None:
        shelf.expected.update(ids)


@contextmanager
def reading() -> Iterator[None]:
    """Keep what is read of the store until the end of this block."""
    token = _SHELF.set(ReadCache())
    try:
        yield
    finally:
        _SHELF.reset(token)
