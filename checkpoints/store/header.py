"""One place in a run's history, without its state."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Record:
    """A checkpoint's header. One with an input digest is an execution: of a step or a gate, or the reuse of one."""

    id: UUID
    run_id: int
    seq: int
    parent: UUID | None
    kind: str
    step: str
    next_step: str
    occurrence: int
    attempt: int
    input_digest: bytes | None
    code_hash: bytes | None
    took_us: int
    at: datetime
    plan_id: int
    removed: bool = False  # by retention: there is no state any more, and what it wrote is not known


COLUMNS = [name for name in Record.__slots__ if name != "removed"]
