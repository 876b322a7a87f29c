"""Checkpoint headers: a checkpoint without its state, and the path from one back to the root."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID


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
