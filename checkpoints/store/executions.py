"""Reads the records of a lineage: its executions, the path to a checkpoint, and the writes of steps.

Recorded writes can be replayed on a state other than the one they were made on. An append stays an append there; a
list that a step gave as a whole is written as a whole. A row's own ops suffice to read them back, except for a plain
list that was stored as a change: that list is read from the state after the row, which is assembled and checked as in
a load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.numeric import Int8

from checkpoints.errors import NoSuchCheckpoint, NotRecorded, NotVerified, OtherLineage
from checkpoints.layout import payloads, rows
from checkpoints.layout.assembly import (
    Assembly,
    ChunkContents,
    Portion,
    check_header,
    chunk_references,
    make_fetcher,
    name_of,
    split_portions,
    unpack_row,
)
from checkpoints.layout.rows import OF_C, CheckpointRow
from checkpoints.models import Checkpoint, Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.values.ops import DROP, Append, Splice, Write

from . import gaps
from .loading import COLUMNS, CheckpointHeader, trace_ancestry

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
_WRITTEN_ROWS = f"""
SELECT coalesce((SELECT lineage FROM checkpoints_run r WHERE r.id = c.run_id), c.run_id), {OF_C}
FROM checkpoints_checkpoint c WHERE id = ANY($1)
"""  # noqa: S608 - constants
_TRAILS = f"""
SELECT DISTINCT ON (c.run_id, c.seq) {OF_C}
FROM unnest($1::bigint[], $2::int[], $3::int[]) AS wanted (run_id, first, last)
JOIN checkpoints_checkpoint c ON c.run_id = wanted.run_id AND c.seq BETWEEN wanted.first AND wanted.last
ORDER BY c.run_id, c.seq
"""  # noqa: S608 - constants
_MARKED = {"append": 4, "splice": 6}  # the length of an op with the mark of a plain list


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
    return parting(path(a_id), path(b_id))


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


@dataclass(slots=True)
class _Written:
    """A row's own writes, still as lines."""

    row: CheckpointRow
    portions: list[Portion]

    def plain(self) -> list[str]:
        """Return the fields that were given as a plain list and are stored as a change of the old one."""
        return [op[1] for op, _ in self.portions if len(op) == _MARKED.get(op[0])]


def writes_of(ids: Iterable[UUID]) -> dict[UUID, dict[str, Write]]:
    """Return the writes of each of these executions as its step gave them: values, Append, Splice and DROP.

    A few queries for any number of executions. Raises NoSuchCheckpoint (NotRecorded if the checkpoint is not an
    execution) and NotVerified.
    """
    wanted = list(dict.fromkeys(ids))
    found = {row[1]: (row[0], _written(CheckpointRow._make(row[1:]))) for row in run_sql(_WRITTEN_ROWS, [wanted])}
    made: dict[UUID, dict[str, Write]] = {}
    for lineage in {lineage for lineage, _ in found.values()}:
        members = [written for of, written in found.values() if of == lineage]
        made |= _read(members, ChunkContents(make_fetcher(lineage)))
    if len(made) < len(wanted):
        raise NoSuchCheckpoint
    return {id: made[id] for id in wanted}


def _written(row: CheckpointRow) -> _Written:
    """Return a row's own writes; an anchor has them beside its manifest. Raises NotVerified and NotRecorded."""
    if row.input_digest is None:
        raise NotRecorded
    check_header(row)
    ops, lines = unpack_row(row)
    try:
        made = list(split_portions(ops, lines))
        if row.anchor_seq == row.seq:
            ((wrote, taken),) = [(op, taken) for op, taken in made if op[0] == "wrote"]
            made = list(split_portions(wrote[1], taken))
    except (ValueError, TypeError, IndexError) as error:
        raise NotVerified(name_of(row), f"its ops do not fit ({error})") from error
    return _Written(row, made)


def _read(members: Sequence[_Written], contents: ChunkContents) -> dict[UUID, dict[str, Write]]:
    """Read the writes of executions of one lineage."""
    lists = _whole_lists([written for written in members if written.plain()], contents)
    contents.collect(chunk_references(line for written in members for _, lines in written.portions for line in lines))
    made = {}
    for written in members:
        try:
            made[written.row.id] = _writes(written, contents, lists.get(written.row.id, {}))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise NotVerified(name_of(written.row), f"its ops do not fit ({error})") from error
    return made


def _writes(written: _Written, contents: ChunkContents, lists: dict[str, Any]) -> dict[str, Write]:
    wide = bool(written.row.codec & payloads.WIDE)
    made: dict[str, Write] = {}
    for op, lines in written.portions:
        verb, name = op[0], op[1]
        if verb == "drop":
            made[name] = DROP
        elif verb == "set":
            made[name] = contents.value(lines[0], wide=wide)
        elif name in lists:
            made[name] = lists[name]
        elif verb == "list":
            found = contents.items(lines, payloads.list_format_of(written.row.codec))
            items = contents.values(found.portions(), wide=wide)
            form = op[2] if len(op) == 4 else ""
            made[name] = Append(items) if form == "append" else Splice(0, 0, items) if form == "splice" else items
        else:
            items = contents.values(lines, wide=wide)
            made[name] = Append(items) if verb == "append" else Splice(op[2], op[3], items)
    return made


def _whole_lists(members: Sequence[_Written], contents: ChunkContents) -> dict[UUID, dict[str, Any]]:
    """Return the plain lists of these executions, each read from the verified state after it."""
    fields = {written.row.id: written.plain() for written in members}
    ends: dict[tuple[int, int], int] = {}
    for written in members:
        place = (written.row.run_id, written.row.anchor_seq)
        ends[place] = max(written.row.seq, ends.get(place, 0))
    if not ends:
        return {}
    columns = [[run for run, _ in ends], [first for _, first in ends], list(ends.values())]
    trails = rows.read(_TRAILS, columns)
    contents.collect(chunk_references(line for row in trails for line in unpack_row(row)[1]))
    made: dict[UUID, dict[str, Any]] = {}
    assembly = Assembly(contents)
    for row in trails:
        if row.anchor_seq == row.seq:
            assembly = Assembly(contents)
        assembly.feed(row)
        if row.id in fields:
            assembly.check()
            made[row.id] = {name: assembly.value(name) for name in fields[row.id]}
    return made
