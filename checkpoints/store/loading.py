"""Loads checkpoints: one statement for the rows, one for the chunks they name, and every digest checked."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from uuid import UUID

from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.layout import rows
from checkpoints.layout.assembly import Assembly
from checkpoints.layout.chunks import ChunkContents, make_fetcher
from checkpoints.layout.snapshot import Snapshot, size_of
from checkpoints.models import Run

from . import read_cache
from .header import COLUMNS, CheckpointHeader

_header = attrgetter(*COLUMNS)


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
    if read_cache.current() is not None:
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
    if read_cache.current() is None:
        return load_checkpoint(id).fields
    _, _, assembly = _on_shelf(id)
    return {name: part.digest for name, part in assembly.check().items()}


def _on_shelf(id: UUID) -> tuple[int, rows.CheckpointRow, Assembly]:
    reader = read_cache.current()
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
