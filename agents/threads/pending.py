"""Pending writes: what a checkpoint's tasks wrote before the next checkpoint was saved.

A task's ordinary writes come in one call and are one row, which stays as it was first written. A special write (an
error, an interrupt, an answer) is a row of its own; a call of special writes alone replaces those before it. This is
what LangGraph's savers do, apart from the number of rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from psycopg.types.numeric import Int2, Int4, Int8

from agents.models import ThreadWrite
from checkpoints.errors import NotVerified
from checkpoints.layout import payloads
from checkpoints.postgresql import wire
from checkpoints.postgresql.sql import run_sql
from checkpoints.store import Along
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical, encode_canonical, encode_with_width

INTERRUPTED = -3  # LangGraph's number of an interrupt
Numbered = tuple[int, str, Any]  # LangGraph's number of the write, the channel, the value as JSON
_COLUMNS = "run_id, checkpoint, task, number, path, codec, value, digest"
_KEEP = f"""
INSERT INTO agents_threadwrite ({_COLUMNS})
SELECT $1, $2, $3, number, $4, codec, value, digest
FROM unnest($5::int[], $6::smallint[], $7::bytea[], $8::bytea[]) AS made (number, codec, value, digest)
ON CONFLICT (run_id, checkpoint, task, number) DO NOTHING RETURNING number"""  # noqa: S608 - constants
_REPLACE = _KEEP.replace(
    "NOTHING RETURNING number",
    "UPDATE SET path = excluded.path, codec = excluded.codec, value = excluded.value, digest = excluded.digest",
)
_READ = f"SELECT {_COLUMNS} FROM agents_threadwrite WHERE run_id = $1 AND checkpoint = ANY($2::uuid[])"  # noqa: S608
_ONE = f"""
INSERT INTO agents_threadwrite ({_COLUMNS})
VALUES ($1::bigint, $2::uuid, $3::text, $4::int, $5::text, $6::smallint, $7::bytea, $8::bytea)
ON CONFLICT (run_id, checkpoint, task, number) DO NOTHING RETURNING 1
"""  # noqa: S608 - constants
_TASK = "(checkpoint, task, path, codec, value, digest)"
_ALONG = f"""
INSERT INTO agents_threadwrite ({_COLUMNS})
SELECT $1::bigint, checkpoint, task, 0, path, codec, value, digest FROM moved, (VALUES {{rows}}) AS made {_TASK}"""  # noqa: S608 - constants
_ASKS = "SELECT 1 FROM agents_threadwrite WHERE run_id = $1 AND checkpoint = $2 AND number = $3 LIMIT 1"
_REMOVE = "DELETE FROM agents_threadwrite WHERE run_id = $1 AND checkpoint = ANY($2::uuid[])"


class Write(NamedTuple):
    """One write, with its place in LangGraph's order."""

    path: str
    task: str
    number: int
    channel: str
    value: Any


class WritesRow(NamedTuple):
    """A row of writes, by its columns: the ordinary ones of a task have the number 0."""

    run_id: int
    checkpoint: UUID
    task: str
    number: int
    path: str
    codec: int
    value: bytes
    digest: bytes

    def writes(self) -> list[Numbered]:
        """Return the writes in it, verified. Raises NotVerified."""
        try:
            content = payloads.unpack(self.codec, self.value)
        except ValueError:
            content = b""
        if _digest(*self[:5], content) != self.digest:
            where = f"pending write {self.number} of task {self.task} at checkpoint {self.checkpoint}"
            raise NotVerified(f"{where} (run {self.run_id})", "it does not match its digest")
        return [(number, channel, shown) for number, channel, shown in decode_canonical(content)]


def row_of(
    run_id: int, checkpoint: UUID, task: str, path: str, writes: Sequence[Numbered], *, number: int = 0
) -> WritesRow:
    """Return the row of some writes, encoded. Raises ValueRefused."""
    content, wide = encode_with_width([list(write) for write in writes])
    digest = _digest(run_id, checkpoint, task, number, path, content)
    return WritesRow(run_id, checkpoint, task, number, path, *payloads.pack(content, wide=wide), digest)


def along(rows: Sequence[WritesRow]) -> Along | None:
    """Return what keeps tasks' writes in one run as a part of a save, which fails if one has written before."""
    if not rows:
        return None
    values: list[wire.Value] = [wire.int8(rows[0].run_id)]
    for row in rows:
        place = row.checkpoint.bytes, row.task.encode(), row.path.encode()
        values += [*place, wire.int2(row.codec), row.value, row.digest]
    return Along(_along(len(rows)), values, partial(_add_tasks, rows))


@cache
def _along(tasks: int) -> str:
    types = ("uuid", "text", "text", "smallint", "bytea", "bytea")
    rows = [", ".join(f"${n}::{of}" for n, of in enumerate(types, 2 + 6 * task)) for task in range(tasks)]
    return _ALONG.format(rows=", ".join(f"({row})" for row in rows))


def _add_tasks(rows: Sequence[WritesRow]) -> None:
    for row in rows:
        add_task(row)


def add_writes(run_id: int, checkpoint: UUID, task: str, path: str, writes: Sequence[Numbered]) -> None:
    """Keep a task's writes at a checkpoint. Raises ValueRefused."""
    ordinary = [write for write in writes if write[0] >= 0]
    special = [write for write in writes if write[0] < 0]
    if special:
        rows = [row_of(run_id, checkpoint, task, path, [write], number=write[0]) for write in special]
        _put(_KEEP if ordinary else _REPLACE, rows)
    if ordinary:
        add_task(row_of(run_id, checkpoint, task, path, ordinary))


def add_task(row: WritesRow) -> None:
    """Keep a task's ordinary writes; of a task that has written before, those whose numbers are new."""
    run_id, checkpoint, task, number, path, codec, value, digest = row
    if run_sql(_ONE, [Int8(run_id), checkpoint, task, Int4(number), path, Int2(codec), value, digest]):
        return
    with transaction.atomic():
        mine = ThreadWrite.objects.select_for_update().filter(run_id=run_id, checkpoint=checkpoint, task=task, number=0)
        path, codec, *stored = mine.values_list("path", "codec", "value", "digest").get()
        before = WritesRow(run_id, checkpoint, task, 0, path, codec, *map(bytes, stored)).writes()
        numbers = {number for number, *_ in before}
        if more := [write for write in row.writes() if write[0] not in numbers]:
            _put(_REPLACE, [row_of(run_id, checkpoint, task, path, [*before, *more])])


def _put(statement: str, rows: Sequence[WritesRow]) -> None:
    run_id, checkpoint, task, _, path, *_ = rows[0]
    columns = zip(*((Int4(row.number), Int2(row.codec), row.value, row.digest) for row in rows), strict=True)
    run_sql(statement, [Int8(run_id), checkpoint, task, path, *map(list, columns)])


def asks(run_id: int, checkpoint: UUID) -> bool:
    """Tell whether a task at the checkpoint was interrupted."""
    return bool(run_sql(_ASKS, [Int8(run_id), checkpoint, Int4(INTERRUPTED)]))


def read(run_id: int, checkpoints: Iterable[UUID]) -> dict[UUID, list[Write]]:
    """Return the writes of some checkpoints of a run, in LangGraph's order. Raises NotVerified."""
    found: dict[UUID, list[Write]] = defaultdict(list)
    for columns in run_sql(_READ, [Int8(run_id), list(checkpoints)]):
        row = WritesRow._make(columns)
        found[row.checkpoint] += [Write(row.path, row.task, *write) for write in row.writes()]
    return {checkpoint: sorted(writes, key=lambda write: write[:3]) for checkpoint, writes in found.items()}


def _digest(run_id: int, checkpoint: UUID, task: str, number: int, path: str, content: bytes) -> bytes:
    """Return the digest of a row's value and of where it belongs, so that a row that was moved shows too."""
    return digests.of_canonical(encode_canonical([run_id, str(checkpoint), task, number, path]) + content)


def go_along(run_id: int, ids: Callable[[], list[UUID]]) -> None:
    """Remove the writes of removed checkpoints, in the transaction that removes those."""
    mine = ThreadWrite.objects.filter(run_id=run_id)
    if mine.exists():
        run_sql(_REMOVE, [Int8(run_id), ids()])
