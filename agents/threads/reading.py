"""Reads a graph's checkpoints: one, or a list of them, the newest first; all verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.numeric import Int8

from agents.models.graph_thread import NO_MASK
from checkpoints import store
from checkpoints.errors import NotVerified
from checkpoints.postgresql.sql import run_sql
from checkpoints.store import Snapshot
from checkpoints.values.checkpoint_kinds import Kind

from . import pending, places
from .pending import Write
from .places import Owner, Place, ThreadRun
from .saving import POSITION, Seen, metadata_of

PAGE = 64  # checkpoints that one portion of a list reads
LOOKED = 8 * PAGE  # checkpoints that one page looks at
_PARENTS = """
SELECT c.id, p.id, c.kind, c.parent FROM checkpoints_checkpoint c
LEFT JOIN checkpoints_checkpoint p ON p.id = c.parent AND p.step <> ALL($2)
WHERE c.id = ANY($1::uuid[])
"""
_LIST = """
SELECT id, run_id, at, seq FROM checkpoints_checkpoint
WHERE run_id = ANY($1::bigint[]) AND step <> ALL($2) AND (at, run_id, seq) < ($3, $4, $5)
  AND id < ($7::uuid[])[1 + (get_byte(uuid_send(id), 6) / 16 = 7)::int + 2 * (run_id = ANY($8::bigint[]))::int]
ORDER BY at DESC, run_id DESC, seq DESC LIMIT $6
"""
_IN_ORDER = "SELECT id, run_id, at, seq FROM checkpoints_checkpoint WHERE run_id = $1 AND step <> ALL($2) ORDER BY seq"
_EPOCH = 0x01B21DD213814000  # the 100 ns from the first moment of a UUIDv6 to that of a UUIDv7
_LAST = 2**60 - 1  # the last moment of a UUIDv6
_ABOVE_ALL = (UUID(int=2**128 - 1),) * 4


class ListPlace(NamedTuple):
    """The place in a list of checkpoints below which it goes on."""

    at: datetime
    run_id: int
    seq: int


@dataclass(frozen=True)
class Found:
    """A checkpoint of a graph, as a checkpointer reads it."""

    thread: str
    namespace: str
    id: str
    parent: str | None
    fields: Mapping[str, Any]
    writes: Sequence[Write]
    edited: Sequence[str] = ()  # the fields that a person has changed since the graph saved them
    place: ListPlace | None = None  # in a list


def get(owner: Owner, place: Place, id: str | None = None) -> tuple[Found | None, Seen]:
    """Return the thread's newest checkpoint, or the one with this id, and what the program knows then.

    Raises NotVerified and ThreadRefused.
    """
    thread = places.find(owner, place)
    if thread is None:
        return None, Seen(0, None)
    thread, now = places.current(owner, thread)
    snapshot = thread.load(now.head if id is None else thread.stored(id))
    if snapshot is None and id is None:
        raise NotVerified(f"run {thread.run_id}", "its head is missing")
    if snapshot is None or POSITION not in snapshot.state:
        return None, Seen(now.token, now.head)
    return _checkpoint_of(thread, snapshot, _read_related(thread, [snapshot.id])), Seen(now.token, now.head)


class _Beside(NamedTuple):
    """The rows that are read beside states: the parents of the checkpoints, the edited ones, and the pending writes."""

    parents: Mapping[UUID, UUID | None]
    edited: Mapping[UUID, UUID]  # with the checkpoint that was edited
    writes: Mapping[UUID, Sequence[Write]]


def _read_related(thread: ThreadRun, ids: Sequence[UUID]) -> _Beside:
    rows = run_sql(_PARENTS, [list(ids), list(places.NOTHING)])
    edited = {id: origin for id, _, kind, origin in rows if kind == Kind.EDIT and origin is not None}
    return _Beside({id: parent for id, parent, *_ in rows}, edited, pending.read(thread.run_id, ids))


def _checkpoint_of(thread: ThreadRun, snapshot: Snapshot, related: _Beside, place: ListPlace | None = None) -> Found:
    parent, origin = related.parents.get(snapshot.id), related.edited.get(snapshot.id)
    edited = snapshot.differing(store.load_checkpoint(origin)) - {POSITION} if origin else ()
    return Found(
        thread.thread, thread.namespace, thread.shown(snapshot.id), thread.shown(parent) if parent else None,
        snapshot.state, related.writes.get(snapshot.id, ()), sorted(edited), place,
    )  # fmt: skip


def page(
    owner: Owner,
    thread: str | None,
    namespace: str | None = None,
    *,
    before: str | None = None,
    below: ListPlace | None = None,
    limit: int,
    only: Mapping[str, Any] | None = None,
) -> tuple[list[Found], ListPlace | None]:
    """Return a thread's checkpoints, or those of all threads, the newest first, and where the list goes on, if it does.

    `before`: whose ids are less than this one, as of every saver; `below`: below this place in that list; `only`: what
    their metadata hold. It looks at LOOKED checkpoints at most, however few of them fit, so that a request takes no
    longer. Raises as `get` does.
    """
    runs = {run.run_id: run for run in places.of_thread(owner, thread) if namespace in (None, run.namespace)}
    bounds, size = _bounds(before), PAGE if only else min(limit, PAGE)
    found: list[Found] = []
    looked = 0
    while portion := _portion(runs, below, size, bounds):
        for checkpoint in portion:
            below, looked = checkpoint.place, looked + 1
            if POSITION in checkpoint.fields and _holds(metadata_of(checkpoint.fields), only or {}):
                found.append(checkpoint)
            if len(found) == limit or looked == LOOKED:
                return found, below
    return found, None


def _bounds(before: str | None) -> tuple[UUID, UUID, UUID, UUID]:
    """Return the ids below which a checkpoint comes before this one: LangGraph's, and the store's of that moment.

    A graph's checkpoint may be compared with those of another namespace, so it need not be in the list. LangGraph makes
    UUIDv6, the store UUIDv7 where a person edits or rewinds. The last two are the same for a run with a mask: its ids
    differ from the shown ones in the last 64 bits, which say nothing of the time.
    """
    if before is None:
        return _ABOVE_ALL
    id = places.parsed(before)
    time = UUID(int=id.int >> 64 << 64)
    if id.version == 6:
        ticks = (id.int >> 80) << 12 | (id.int >> 64) & 0xFFF
        moment = UUID(int=max(ticks - _EPOCH, 0) // 10_000 << 80)
        return id, moment, time, moment
    if id.version == 7:
        ticks = min((id.int >> 80) * 10_000 + _EPOCH, _LAST)
        moment = UUID(int=(ticks >> 12) << 80 | 6 << 76 | (ticks & 0xFFF) << 64)
        return moment, id, moment, time
    return id, id, time, time


def _portion(runs: Mapping[int, ThreadRun], below: ListPlace | None, most: int, bounds: Sequence[UUID]) -> list[Found]:
    after = below or ListPlace(datetime.max, 2**62, 0)
    params = [
        [Int8(run) for run in runs], list(places.NOTHING), after.at, Int8(after.run_id), Int8(after.seq), Int8(most),
        list(bounds), [Int8(id) for id, run in runs.items() if run.mask != NO_MASK],
    ]  # fmt: skip
    rows = run_sql(_LIST, params)
    with store.reading():
        return list(_read(runs, rows))


def in_order(run: ThreadRun) -> Iterator[Found]:
    """Yield a run's checkpoints, the oldest first: each is read when it is asked for, inside `store.reading`."""
    rows = run_sql(_IN_ORDER, [Int8(run.run_id), list(places.NOTHING)])
    for start in range(0, len(rows), PAGE):
        yield from _read({run.run_id: run}, rows[start : start + PAGE])


def _read(runs: Mapping[int, ThreadRun], rows: Sequence[Any]) -> Iterator[Found]:
    of_run: dict[int, list[UUID]] = {}
    for id, run_id, *_ in rows:
        of_run.setdefault(run_id, []).append(id)
    beside = {run_id: _read_related(runs[run_id], ids) for run_id, ids in of_run.items()}
    store.expect(id for id, *_ in rows)
    for id, run_id, at, seq in rows:
        yield _checkpoint_of(runs[run_id], store.load_checkpoint(id), beside[run_id], ListPlace(at, run_id, seq))


def _holds(value: Any, part: Any) -> bool:
    """Tell whether `value` has everything that `part` has, as PostgreSQL's @> does for objects."""
    if isinstance(part, Mapping):
        return isinstance(value, Mapping) and all(
            name in value and _holds(value[name], member) for name, member in part.items()
        )
    return bool(value == part) and isinstance(value, bool) == isinstance(part, bool)
