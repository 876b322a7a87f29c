"""Reads the writes of steps back from the rows of their checkpoints, in the form in which the steps gave them.

A row's own ops suffice, except for a plain list that was stored as a change: that list is read from the state after
the row, which is assembled and checked as in a load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from checkpoints.errors import NoSuchCheckpoint, NotRecorded, NotVerified
from checkpoints.layout import payloads, rows
from checkpoints.layout.assembly import (
    Assembly,
    Portion,
    check_header,
    chunk_references,
    name_of,
    split_portions,
    unpack_row,
)
from checkpoints.layout.chunks import ChunkContents, make_fetcher
from checkpoints.layout.rows import COLUMNS, OF_C, CheckpointRow
from checkpoints.postgresql.sql import run_sql
from checkpoints.values.ops import DROP, Append, Splice, Write

_ROWS = f"""
SELECT coalesce((SELECT lineage FROM checkpoints_run r WHERE r.id = c.run_id), c.run_id), {COLUMNS}
FROM checkpoints_checkpoint c WHERE id = ANY($1)
"""  # noqa: S608 - constants
_TRAILS = f"""
SELECT DISTINCT ON (c.run_id, c.seq) {OF_C}
FROM unnest($1::bigint[], $2::int[], $3::int[]) AS wanted (run_id, first, last)
JOIN checkpoints_checkpoint c ON c.run_id = wanted.run_id AND c.seq BETWEEN wanted.first AND wanted.last
ORDER BY c.run_id, c.seq
"""  # noqa: S608 - constants
_MARKED = {"append": 4, "splice": 6}  # the length of an op with the mark of a plain list


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
    found = {row[1]: (row[0], _written(CheckpointRow._make(row[1:]))) for row in run_sql(_ROWS, [wanted])}
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
