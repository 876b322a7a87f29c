"""Reads the records of a lineage: its executions, the path to a checkpoint, and the writes of steps.

Recorded writes can be replayed on a state other than the one they were made on. An append stays an append there; a
list that a step gave as a whole is written as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from psycopg.types.numeric import Int8

from checkpoints.errors import NoSuchCheckpoint
from checkpoints.postgresql.sql import run_sql

from . import gaps
from .header import COLUMNS, CheckpointHeader, trace_ancestry
from .recorded_writes import writes_of

__all__ = ["executions", "of_lineage", "path", "writes_of"]


_COLUMNS = ", ".join(f"c.{name}" for name in COLUMNS)
# The root by its key and the forks by their own index, so that no other runs are read.
_MEMBERS = "SELECT id FROM checkpoints_run WHERE id = $1 OR (lineage = $1 AND forked_from IS NOT NULL)"
_LINEAGE = f"""
SELECT {_COLUMNS} FROM ({_MEMBERS}) run JOIN checkpoints_checkpoint c ON c.run_id = run.id ORDER BY c.run_id, c.seq
"""  # noqa: S608 - constants
_EXECUTIONS = _LINEAGE.replace("ORDER BY", "WHERE c.input_digest IS NOT NULL ORDER BY")
# A parent must be older than its child, so the walk ends even on corrupt data. A removed parent ends it too.
_PATH = f"""
WITH RECURSIVE path AS (
  SELECT {_COLUMNS}, 0 AS up FROM checkpoints_checkpoint c WHERE id = $1
  UNION ALL
  SELECT {_COLUMNS}, up + 1 FROM path JOIN checkpoints_checkpoint c ON c.id = path.parent
  WHERE (c.run_id, c.seq) < (path.run_id, path.seq)
)
SELECT {_COLUMNS} FROM path c ORDER BY up DESC
"""  # noqa: S608 - constants


def executions(lineage: int) -> list[CheckpointHeader]:
    """Return the executions of a run and its forks, on all branches, by run and number.

    Removed ones are included.
    """
    found = [CheckpointHeader(*row) for row in run_sql(_EXECUTIONS, [Int8(lineage)])]
    gone = [value for value in gaps.records_of(lineage).values() if value.input_digest is not None]
    return sorted(found + gone, key=lambda header: (header.run_id, header.seq)) if gone else found


def of_lineage(lineage: int) -> list[CheckpointHeader]:
    """Return all checkpoints of a run and its forks, of every kind, by run and number; removed ones included."""
    found = [CheckpointHeader(*row) for row in run_sql(_LINEAGE, [Int8(lineage)])]
    known = {item.id for item in found}
    if all(item.parent is None or item.parent in known for item in found):
        return found
    return sorted([*found, *gaps.records_of(lineage).values()], key=lambda header: (header.run_id, header.seq))


def path(head: UUID, known: Sequence[CheckpointHeader] = ()) -> list[CheckpointHeader]:
    """Return the checkpoints from the root of the lineage to this one, of every kind; removed ones included.

    Those that are `known` and lead to it are not read. Raises NoSuchCheckpoint.
    """
    found = trace_ancestry(head, {row.id: row for row in known}) or _stretch(head)
    if not found:
        raise NoSuchCheckpoint
    gone: gaps.RemovedPast | None = None
    while (above := found[0].parent) is not None:
        more = trace_ancestry(above, {row.id: row for row in _stretch(above)}, found[0])
        if not more:
            gone = gone or gaps.RemovedPast(found[0].run_id)
            more = gone.leading_to(above, found[0])
        if not more:
            break
        found = more + found
    return found


def _stretch(tip: UUID) -> list[CheckpointHeader]:
    """Return the checkpoints that lead to this one, back to the first whose parent is missing."""
    return [CheckpointHeader(*row) for row in run_sql(_PATH, [tip])]
