"""Loads checkpoints: one statement for the rows, one for the chunks they name, and every digest checked.

A page loads several checkpoints of one lineage, and some of them more than once: they build on the same rows and name
the same chunks. Inside `reading` a row and a chunk are fetched once, and those that are `expect`ed in one statement.
Checkpoints never change, so the cache cannot become stale; each state is assembled and verified as in every load.
Outside of `reading` nothing is cached: a worker must notice later damage.

Also here: checkpoint headers: a checkpoint without its state, and the path from one back to the root.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.layout import rows
from checkpoints.layout.assembly import Assembly, ChunkContents, chunk_references, make_fetcher, unpack_row
from checkpoints.layout.rows import OF_C, CheckpointRow
from checkpoints.layout.snapshot import Snapshot, size_of
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql


class CheckpointHeader(NamedTuple):
    """A checkpoint without its state: its place in its run's history, and how it was made.

    One with an input digest is an execution: of a step or a gate, or the reuse of one.
    """

    id: UUID
    run_id: int
    plan_id: int
    seq: int
    parent: UUID | None
    kind: str
    step: str
    next_step: str
    occurrence: int
    attempt: int
    input_digest: bytes | None
    code_hash: bytes | None
    at: datetime
    took_us: int
    removed: bool = False  # by retention: its state and its writes are gone


COLUMNS = CheckpointHeader._fields[:-1]


def trace_ancestry(
    tip: UUID, among: Mapping[UUID, CheckpointHeader], child: CheckpointHeader | None = None
) -> list[CheckpointHeader]:
    """Return the checkpoints that lead to `tip`, itself last, back to the first whose parent is not `among` these.

    A parent must be older than its `child`, so the walk ends even on corrupt data.
    """
    found: list[CheckpointHeader] = []
    at: UUID | None = tip
    while at is not None and (here := among.get(at)) is not None:
        if child is not None and (here.run_id, here.seq) >= (child.run_id, child.seq):
            break
        found.append(here)
        at, child = here.parent, here
    return found[::-1]


_TRAILS = f"""
WITH tips AS (
  SELECT run_id, anchor_seq, max(seq) AS seq FROM checkpoints_checkpoint WHERE id = ANY($1) GROUP BY run_id, anchor_seq
)
SELECT r.lineage, {OF_C} FROM tips JOIN checkpoints_run r ON r.id = tips.run_id
JOIN checkpoints_checkpoint c ON c.run_id = tips.run_id AND c.seq BETWEEN tips.anchor_seq AND tips.seq
ORDER BY c.run_id, c.seq
"""  # noqa: S608 - constants
_header = attrgetter(*COLUMNS)


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


def current_cache() -> ReadCache | None:
    """Return the cache of the current `reading`; None outside of one."""
    return _SHELF.get()


def expect(ids: Iterable[UUID]) -> None:
    """Announce that these checkpoints will be loaded, so that the next load reads them too.

    Does nothing outside of `reading`.
    """
    shelf = current_cache()
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


def load(run: Run) -> Snapshot:
    """Load the run's head, verified. Raises NotVerified."""
    return load_head(run)[0]


def load_head(run: Run) -> tuple[Snapshot, list[CheckpointHeader]]:
    """Load the run's head, verified, and the headers of the checkpoints that it was read from, in their order.

    They begin at the anchor: a young run has no others. Raises NotVerified.
    """

    def read() -> rows.Trail:
        found = rows.head_trail(run.pk)
        if not found.rows:
            raise NotVerified(f"run {run.pk}", "its head is missing, or is not its newest checkpoint")
        return found

    snapshot, trail = _read_twice(read)
    return snapshot, [CheckpointHeader(*_header(row)) for row in trail.rows]


def load_checkpoint(id: UUID) -> Snapshot:
    """Load any checkpoint, verified. Raises NoSuchCheckpoint and NotVerified."""
    if current_cache() is not None:
        return _finished(*_on_shelf(id))

    def read() -> rows.Trail:
        found = rows.trail(id)
        if not found.rows:
            raise NoSuchCheckpoint
        return found

    return _read_twice(read)[0]


def fields_of(id: UUID) -> dict[str, bytes]:
    """Return the digests of a checkpoint's fields, verified; cheaper than their values.

    Raises as `load_checkpoint` does.
    """
    if current_cache() is None:
        return load_checkpoint(id).fields
    _, _, assembly = _on_shelf(id)
    return {name: part.digest for name, part in assembly.check().items()}


def _on_shelf(id: UUID) -> tuple[int, rows.CheckpointRow, Assembly]:
    reader = current_cache()
    found = reader.assembled(id) if reader is not None else None
    if found is None:
        raise NoSuchCheckpoint
    return found


def _read_twice(read: Callable[[], rows.Trail]) -> tuple[Snapshot, rows.Trail]:
    """Read a trail and assemble it; read it again if it does not verify.

    Rows and the chunks they name are two statements, and a prune may rewrite a row and free a chunk in between. A
    failed verification is a fault only if the second reading finds the same rows.
    """
    trail = read()
    try:
        return _assemble(trail), trail
    except NotVerified:
        again = read()
        if again == trail:
            raise
        return _assemble(again), again


def _assemble(trail: rows.Trail) -> Snapshot:
    assembly = Assembly(ChunkContents(make_fetcher(trail.lineage)))
    assembly.feed_all(trail.rows)
    return _finished(trail.lineage, trail.rows[-1], assembly)


def _finished(lineage: int, row: rows.CheckpointRow, assembly: Assembly) -> Snapshot:
    parts, state = assembly.finish()
    return Snapshot(
        row.run_id, lineage, row.plan_id, row.id, row.seq, row.digest, state,
        {name: part.digest for name, part in parts.items()}, row.state_digest, row.next_step, row.at, row.token,
        row.anchor_seq, parts, size_of(parts), assembly.list_format,
    )  # fmt: skip
