"""Reads a graph's checkpoints, all verified: one, or a list, the newest first, and what a DeltaChannel is rebuilt from.

That are the writes on the path to a checkpoint, back to the last stored value. One statement reads the rows of the path
and the writes at them, from the checkpoint towards the root. A row's ops tell whether a channel has a stored value
there, without putting the state together; only the state that has one is loaded. Each row is the one its child names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.numeric import Int4, Int8

from agents.models.graph_thread import NO_MASK
from checkpoints import store
from checkpoints.errors import NotVerified
from checkpoints.layout.assembly import check_header, name_of, unpack_row
from checkpoints.layout.rows import OF_C, TYPES, CheckpointRow
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
PATH_PORTION = 512  # checkpoints that one statement reads; a snapshot comes more often than that
_OF_WRITE = {
    "id": "w.checkpoint", "run_id": "w.run_id", "seq": "w.number", "codec": "w.codec", "payload": "w.value",
    "digest": "w.digest",
}  # fmt: skip
_WRITE = ", ".join(_OF_WRITE.get(name) or f"NULL::{column.name}" for name, column in TYPES.items())
_PATH = f"""
WITH RECURSIVE path AS (
  SELECT id, seq, parent, 0 AS up FROM checkpoints_checkpoint WHERE id = $1 AND run_id = $2
  UNION ALL
  SELECT c.id, c.seq, c.parent, up + 1 FROM path JOIN checkpoints_checkpoint c ON c.id = path.parent
  WHERE c.run_id = $2 AND c.seq < path.seq AND up + 1 < $3
)
SELECT up, NULL::text, NULL::text, {OF_C} FROM path JOIN checkpoints_checkpoint c ON c.id = path.id
UNION ALL
SELECT up, w.task, w.path, {_WRITE} FROM path JOIN agents_threadwrite w ON w.run_id = $2 AND w.checkpoint = path.id
ORDER BY 1
"""  # noqa: S608 - constants


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
    owner: Owner, thread: str | None, namespace: str | None = None, *, before: str | None = None,
    below: ListPlace | None = None, limit: int, only: Mapping[str, Any] | None = None,
) -> tuple[list[Found], ListPlace | None]:  # fmt: skip
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


@dataclass
class ChannelPast:
    """One channel's history, gathered on the way from the checkpoint towards the root."""

    channel: str
    name: str  # of its field in the state
    checkpoint_writes: list[list[Write]] = field(default_factory=list)  # of each checkpoint, newest first
    same_since: int | None = None  # how many checkpoints were passed where the rows began to say nothing of the field
    first: UUID | None = None  # the checkpoint there
    stored: UUID | None = None  # the checkpoint where its value is stored
    value: Any = None

    def pass_by(self, row: CheckpointRow, has: bool | None, writes: Sequence[Write]) -> None:
        """Go past a checkpoint. `has`: whether the field has a value there; None: as it had at the parent."""
        self.checkpoint_writes.append([write for write in writes if write.channel == self.channel])
        if has is False:
            self.same_since = self.first = None
            return
        if self.same_since is None:
            self.same_since, self.first = len(self.checkpoint_writes), row.id
        if has:
            self.stored, self.checkpoint_writes = self.first, self.checkpoint_writes[: self.same_since]

    @property
    def writes(self) -> list[Write]:
        """The writes since the stored value, the oldest first."""
        return [write for at_checkpoint in reversed(self.checkpoint_writes) for write in at_checkpoint]


def read_histories(owner: Owner, place: Place, id: str, channels: Mapping[str, str]) -> dict[str, ChannelPast]:
    """Return the history of each channel, given with its field's name, that leads to this checkpoint.

    Writes at the checkpoint itself are not part of it. Raises NotVerified and ThreadRefused.
    """
    thread = places.find(owner, place)
    if thread is None:
        return {name: ChannelPast(name, field_name) for name, field_name in channels.items()}
    found, _ = walked(thread, thread.stored(id), channels)
    for channel in found.values():
        if channel.stored is not None:
            channel.value = store.load_checkpoint(channel.stored).state[channel.name]
    return found


def walked(thread: ThreadRun, id: UUID, channels: Mapping[str, str]) -> tuple[dict[str, ChannelPast], list[UUID]]:
    """Return the channels' histories, and the checkpoints that they need, the newest first. Raises NotVerified."""
    walks = {name: ChannelPast(name, field_name) for name, field_name in channels.items()}
    needed: list[UUID] = []
    for row, writes in _above(thread, id):
        left = [walk for walk in walks.values() if walk.stored is None]
        if not left:
            break
        needed.append(row.id)
        presence = {op[1]: op[0] != "drop" for op in unpack_row(row)[0] if op[0] != "wrote"}  # of values after the ops
        for walk in left:
            walk.pass_by(row, presence.get(walk.name, False if row.anchor_seq == row.seq else None), writes)
    return walks, needed


def _above(thread: ThreadRun, id: UUID) -> Iterator[tuple[CheckpointRow, list[Write]]]:
    """Yield the ancestors of a checkpoint of the graph, verified, with their writes; the parent first."""
    child: CheckpointRow | None = None
    at: UUID | None = id
    while at is not None:
        rows, writes = _path_portion(thread, at)
        for row in rows:
            check_header(row)
            if child is not None and child.id != row.id:
                if child.parent_digest != row.digest:
                    raise NotVerified(name_of(child), "its parent is not the one it was saved after")
                if row.step in places.NOTHING:
                    return
                yield row, sorted(writes.get(row.id, ()), key=lambda write: write[:3])
            child = row
        # The next portion begins with the last checkpoint of this one, to see that the chain goes on.
        at = child.id if child is not None and child.parent is not None and len(rows) == PATH_PORTION else None


def _path_portion(thread: ThreadRun, tip: UUID) -> tuple[list[CheckpointRow], dict[UUID, list[Write]]]:
    rows: list[CheckpointRow] = []
    writes: dict[UUID, list[Write]] = {}
    for _, task, path, *columns in run_sql(_PATH, [tip, Int8(thread.run_id), Int4(PATH_PORTION)]):
        row = CheckpointRow._make(columns)
        if task is None:
            rows.append(row)
            continue
        pending_row = pending.WritesRow(row.run_id, row.id, task, row.seq, path, row.codec, row.payload, row.digest)
        writes.setdefault(row.id, []).extend(Write(path, task, *write) for write in pending_row.writes())
    return rows, writes
