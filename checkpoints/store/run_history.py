"""A run's history: lists its checkpoints, and finds where the paths to two of them parted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from checkpoints.errors import OtherLineage
from checkpoints.models import Checkpoint, Run

from . import executions
from .header import CheckpointHeader


@dataclass(frozen=True, slots=True)
class CheckpointComparison:
    """Two checkpoints of a lineage compared: their last common ancestor, and the path from it to each, without it."""

    ancestor: CheckpointHeader
    to_a: tuple[CheckpointHeader, ...]
    to_b: tuple[CheckpointHeader, ...]


def history(run: Run, *, before_seq: int | None = None, limit: int = 100) -> list[Checkpoint]:
    """Return the run's checkpoints on all branches, newest first, without their payloads.

    `before_seq` is the cursor. `named` is the name of each, "" for none.
    """
    found = Checkpoint.objects.filter(run=run).with_names().defer("payload").order_by("-seq")
    if before_seq is not None:
        found = found.filter(seq__lt=before_seq)
    return list(found[:limit])


def compare(a_id: UUID, b_id: UUID) -> CheckpointComparison:
    """Find where the paths to two checkpoints of one lineage parted.

    Raises NoSuchCheckpoint and OtherLineage.
    """
    return parting(executions.path(a_id), executions.path(b_id))


def parting(a: Sequence[CheckpointHeader], b: Sequence[CheckpointHeader]) -> CheckpointComparison:
    """Compare two paths from the root. Raises OtherLineage if they share nothing."""
    shared = 0
    for row, other in zip(a, b, strict=False):
        if row.id != other.id:
            break
        shared += 1
    if not shared:
        raise OtherLineage
    return CheckpointComparison(a[shared - 1], tuple(a[shared:]), tuple(b[shared:]))
