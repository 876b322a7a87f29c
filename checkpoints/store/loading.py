"""Loads checkpoints: one statement for the rows, one for the chunks they name, and every digest checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.layout import rows
from checkpoints.layout.assembly import Assembly
from checkpoints.layout.chunks import ChunkContents, fetcher
from checkpoints.layout.snapshot import Snapshot, size_of
from checkpoints.models import Run

from . import read_cache


def load(run: Run) -> Snapshot:
    """Load the run's head, verified. Raises NotVerified."""

    def read() -> Sequence[rows.CheckpointRow]:
        found = rows.head_trail(run.pk)
        if not found:
            raise NotVerified(f"run {run.pk}", "its head is missing, or is not its newest checkpoint")
        return found

    return _read_twice(read, run.lineage)


def load_checkpoint(id: UUID, *, lineage: int | None = None) -> Snapshot:
    """Load any checkpoint, verified. Raises NoSuchCheckpoint and NotVerified. Giving its lineage saves a query."""
    if read_cache.current() is not None:
        return _finished(*_on_shelf(id))

    def read() -> Sequence[rows.CheckpointRow]:
        found = rows.trail(id)
        if not found:
            raise NoSuchCheckpoint
        return found

    return _read_twice(read, lineage)


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


def _read_twice(read: Callable[[], Sequence[rows.CheckpointRow]], lineage: int | None) -> Snapshot:
    """Read a trail and assemble it; read it again if it does not verify.

    Rows and the chunks they name are two statements, and a prune may rewrite a row and free a chunk in between. A
    failed verification is a fault only if the second reading finds the same rows.
    """
    trail = read()
    try:
        return _assemble(trail, lineage)
    except NotVerified:
        again = read()
        if again == trail:
            raise
        return _assemble(again, lineage)


def _assemble(trail: Sequence[rows.CheckpointRow], lineage: int | None) -> Snapshot:
    row = trail[-1]
    if lineage is None:
        lineage = Run.objects.values_list("lineage", flat=True).get(pk=row.run_id) or row.run_id
    assembly = Assembly(ChunkContents(fetcher(lineage)))
    assembly.feed_all(trail)
    return _finished(lineage, row, assembly)


def _finished(lineage: int, row: rows.CheckpointRow, assembly: Assembly) -> Snapshot:
    parts, state = assembly.finish()
    return Snapshot(
        row.run_id, lineage, row.plan_id, row.id, row.seq, row.digest, state,
        {name: part.digest for name, part in parts.items()}, row.state_digest, row.next_step, row.at, row.token,
        row.anchor_seq, parts, size_of(parts), assembly.lists,
    )  # fmt: skip
