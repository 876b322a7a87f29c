"""Looking back over a run: its checkpoints, the path that counts, and what changed between two of them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from . import patch
from .loading import load_checkpoint
from .models import Checkpoint, Run


def history(run: Run, *, before_seq: int | None = None, limit: int = 100) -> list[Checkpoint]:
    """The run's checkpoints on all branches, newest first, without their payloads; `before_seq` is the cursor."""
    found = Checkpoint.objects.filter(run=run).defer("payload").order_by("-seq")
    if before_seq is not None:
        found = found.filter(seq__lt=before_seq)
    return list(found[:limit])


def path(run: Run) -> list[int]:
    """The numbers of the checkpoints from the run's first to its head, without abandoned branches."""
    parents = {id: (seq, parent) for id, seq, parent in _positions(run)}
    found: list[int] = []
    at = Run.objects.values_list("head", flat=True).get(pk=run.pk)
    while at in parents:
        seq, at = parents[at]
        found.append(seq)
    return found[::-1]


def _positions(run: Run) -> Any:
    return Checkpoint.objects.filter(run=run).values_list("id", "seq", "parent")


def diff(a_id: UUID, b_id: UUID) -> list[dict[str, Any]]:
    """Rows of what differs between the states of two checkpoints, as patch.changes gives them."""
    return patch.changes(load_checkpoint(a_id).state, load_checkpoint(b_id).state)
