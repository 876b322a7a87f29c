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


class TaskWrites(NamedTuple):
    """The ordinary writes of a task, and the row that they are unless it has written before."""

    run_id: int
    checkpoint: UUID
    task: str
    path: str
    writes: Sequence[Numbered]
    codec: int
    value: bytes
    digest: bytes


def of_task(run_id: int, checkpoint: UUID, task: str, path: str, writes: Sequence[Numbered]) -> TaskWrites:
    """Return a task's ordinary writes, encoded. Raises ValueRefused."""
    return TaskWrites(run_id, checkpoint, task, path, writes, *_encoded(run_id, checkpoint, task, path, 0, writes))


def along(tasks: Sequence[TaskWrites]) -> Along | None:
    """Return what keeps tasks' writes in one run as a part of a save, which fails if one has written before."""
    if not tasks:
        return None
    values: list[wire.Value] = [wire.int8(tasks[0].run_id)]
    for task_writes in tasks:
        place = task_writes.checkpoint.bytes, task_writes.task.encode(), task_writes.path.encode()
        values += [*place, wire.int2(task_writes.codec), task_writes.value, task_writes.digest]
    return Along(_along(len(tasks)), values, partial(_apart, tasks))


@cache
def _along(tasks: int) -> str:
    types = ("uuid", "text", "text", "smallint", "bytea", "bytea")
    rows = [", ".join(f"${n}::{of}" for n, of in enumerate(types, 2 + 6 * task)) for task in range(tasks)]
    return _ALONG.format(rows=", ".join(f"({row})" for row in rows))


def _apart(tasks: Sequence[TaskWrites]) -> None:
    for task_writes in tasks:
        add_task(task_writes)


def add_writes(run_id: int, checkpoint: UUID, task: str, path: str, writes: Sequence[Numbered]) -> None:
    """Keep a task's writes at a checkpoint. Raises ValueRefused."""
    ordinary = [write for write in writes if write[0] >= 0]
    special = [write for write in writes if write[0] < 0]
    if special:
        rows = [(number, [(number, channel, value)]) for number, channel, value in special]
        columns = [
            list(column) for column in zip(*(_row(run_id, checkpoint, task, path, *row) for row in rows), strict=True)
        ]
        run_sql(_KEEP if ordinary else _REPLACE, [Int8(run_id), checkpoint, task, path, *columns])
    if ordinary:
        add_task(of_task(run_id, checkpoint, task, path, ordinary))


def add_task(task_writes: TaskWrites) -> None:
    """Keep a task's ordinary writes; of a task that has written before, those whose numbers are new."""
    run_id, checkpoint, task, path, writes, codec, value, digest = task_writes
    if not run_sql(_ONE, [Int8(run_id), checkpoint, task, Int4(0), path, Int2(codec), value, digest]):
        _add_more(run_id, checkpoint, task, path, writes)


def _add_more(run_id: int, checkpoint: UUID, task: str, path: str, ordinary: Sequence[Numbered]) -> None:
    """Add those writes of a task that has written before whose numbers are new."""
    with transaction.atomic():
        mine = ThreadWrite.objects.select_for_update().filter(run_id=run_id, checkpoint=checkpoint, task=task, number=0)
        row = mine.values_list("codec", "value", "digest", "path").get()
        before = content(run_id, checkpoint, task, 0, row[3], row[0], bytes(row[1]), bytes(row[2]))
        there = {number for number, *_ in before}
        if more := [write for write in ordinary if write[0] not in there]:
            made = _row(run_id, checkpoint, task, row[3], 0, [*before, *more])
            run_sql(_REPLACE, [Int8(run_id), checkpoint, task, row[3], *([column] for column in made)])


def _row(
    run_id: int, checkpoint: UUID, task: str, path: str, number: int, writes: Sequence[Numbered]
) -> tuple[Int4, Int2, bytes, bytes]:
    """Return the number, codec, value and digest of a row."""
    codec, value, digest = _encoded(run_id, checkpoint, task, path, number, writes)
    return Int4(number), Int2(codec), value, digest


def _encoded(
    run_id: int, checkpoint: UUID, task: str, path: str, number: int, writes: Sequence[Numbered]
) -> tuple[int, bytes, bytes]:
    content, wide = encode_with_width([list(write) for write in writes])
    codec, value = payloads.pack(content, wide=wide)
    return codec, value, _digest(run_id, checkpoint, task, number, path, content)


def asks(run_id: int, checkpoint: UUID) -> bool:
    """Tell whether a task at the checkpoint was interrupted."""
    return bool(run_sql(_ASKS, [Int8(run_id), checkpoint, Int4(INTERRUPTED)]))


def read(run_id: int, checkpoints: Iterable[UUID]) -> dict[UUID, list[Write]]:
    """Return the writes of some checkpoints of a run, in LangGraph's order. Raises NotVerified."""
    found: dict[UUID, list[Write]] = defaultdict(list)
    for _, checkpoint, task, number, path, codec, value, digest in run_sql(_READ, [Int8(run_id), list(checkpoints)]):
        for write_number, channel, shown in content(run_id, checkpoint, task, number, path, codec, value, digest):
            found[checkpoint].append(Write(path, task, write_number, channel, shown))
    return {checkpoint: sorted(writes, key=lambda write: write[:3]) for checkpoint, writes in found.items()}


def content(
    run_id: int, checkpoint: UUID, task: str, number: int, path: str, codec: int, value: bytes, digest: bytes
) -> list[Numbered]:
    """Return the writes in a row, verified. Raises NotVerified."""
    try:
        held = payloads.unpack(codec, value)
    except ValueError:
        held = b""
    if _digest(run_id, checkpoint, task, number, path, held) != digest:
        where = f"pending write {number} of task {task} at checkpoint {checkpoint} (run {run_id})"
        raise NotVerified(where, "it does not match its digest")
    return [(write_number, channel, shown) for write_number, channel, shown in decode_canonical(held)]


def _digest(run_id: int, checkpoint: UUID, task: str, number: int, path: str, content: bytes) -> bytes:
    """Return the digest of a row's value and of where it belongs, so that a row that was moved shows too."""
    return digests.of_canonical(encode_canonical([run_id, str(checkpoint), task, number, path]) + content)


def go_along(run_id: int, ids: Callable[[], list[UUID]]) -> None:
    """Remove the writes of removed checkpoints, in the transaction that removes those."""
    mine = ThreadWrite.objects.filter(run_id=run_id)
    if mine.exists():
        run_sql(_REMOVE, [Int8(run_id), ids()])
