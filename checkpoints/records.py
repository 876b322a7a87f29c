"""What was recorded: the executions of a lineage, the path to a checkpoint, and what a step wrote.

A record's writes can be replayed on another state than the one they were made on. An append stays an append
there; a list that a step gave as a whole is written as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.types.numeric import Int4, Int8

from .errors import NoSuchCheckpoint
from .rows import run_sql
from .writings import writes_of

__all__ = ["Record", "executions", "path", "twin", "writes_of"]


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


_COLUMNS = ", ".join(f"c.{name}" for name in Record.__slots__)
# The root by its key and the forks by their own index: runs that are neither are not looked at.
_MEMBERS = "SELECT id FROM checkpoints_run WHERE id = $1 OR (lineage = $1 AND forked_from IS NOT NULL)"
_EXECUTIONS = f"""
SELECT {_COLUMNS} FROM ({_MEMBERS}) run JOIN checkpoints_checkpoint c ON c.run_id = run.id
WHERE c.input_digest IS NOT NULL ORDER BY c.run_id, c.seq
"""  # noqa: S608 - constants
# A parent is older than its child, which ends the walk whatever is stored.
_PATH = f"""
WITH RECURSIVE path AS (
  SELECT {_COLUMNS}, 0 AS up FROM checkpoints_checkpoint c WHERE id = $1
  UNION ALL
  SELECT {_COLUMNS}, up + 1 FROM path JOIN checkpoints_checkpoint c ON c.id = path.parent
  WHERE (c.run_id, c.seq) < (path.run_id, path.seq)
)
SELECT {_COLUMNS} FROM path c ORDER BY up DESC
"""  # noqa: S608 - constants
_TWIN = f"""
SELECT c.id FROM ({_MEMBERS}) run JOIN checkpoints_checkpoint c ON c.run_id = run.id
WHERE c.input_digest = $3 AND c.step = $2 AND c.code_hash = $4 AND c.occurrence = $5 AND c.kind IN ('step', 'reused')
ORDER BY c.at DESC, c.run_id DESC, c.seq DESC LIMIT 1
"""  # noqa: S608 - constants


def executions(lineage: int) -> list[Record]:
    """What was executed in a run and its forks, on all branches, by run and number."""
    return [Record(*row) for row in run_sql(_EXECUTIONS, [Int8(lineage)])]


def path(head: UUID) -> list[Record]:
    """The checkpoints from the root of the lineage to this one, of every kind. Raises NoSuchCheckpoint."""
    found = [Record(*row) for row in run_sql(_PATH, [head])]
    if not found:
        raise NoSuchCheckpoint
    return found


def twin(lineage: int, step: str, input_digest: bytes, code_hash: bytes, occurrence: int) -> UUID | None:
    """The newest record of this very execution of a step in a lineage; None where it never ran.

    Reads through every checkpoint of the lineage, since an index would cost each save: who asks for many holds
    `executions` instead.
    """
    found = run_sql(_TWIN, [Int8(lineage), step, input_digest, code_hash, Int4(occurrence)])
    return found[0][0] if found else None
