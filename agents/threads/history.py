"""Reads what a DeltaChannel is rebuilt from: the writes on the path to a checkpoint, back to the last stored value.

One statement reads the rows of the path and the writes at them, from the checkpoint towards the root. A row's ops tell
whether a channel has a stored value there, without putting the state together; only the state that has one is loaded.
Every row is verified, and that each is the one its child names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg.types.numeric import Int4, Int8

from checkpoints import store
from checkpoints.errors import NotVerified
from checkpoints.layout.assembly import check_header, name_of, unpack_row
from checkpoints.layout.rows import OF_C, TYPES, CheckpointRow
from checkpoints.postgresql.sql import run_sql

from . import pending, places
from .pending import Write
from .places import Owner, Place, ThreadRun

PORTION = 512  # checkpoints that one statement reads; a snapshot comes more often than that
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
        presence = _field_presence(row)
        for walk in left:
            walk.pass_by(row, presence.get(walk.name, False if row.anchor_seq == row.seq else None), writes)
    return walks, needed


def _field_presence(row: CheckpointRow) -> dict[str, bool]:
    """Return what a row's ops say of fields: whether each has a value after it."""
    ops, _ = unpack_row(row)
    return {op[1]: op[0] != "drop" for op in ops if op[0] != "wrote"}


def _above(thread: ThreadRun, id: UUID) -> Iterator[tuple[CheckpointRow, list[Write]]]:
    """Yield the ancestors of a checkpoint of the graph, verified, with their writes; the parent first."""
    child: CheckpointRow | None = None
    at: UUID | None = id
    while at is not None:
        rows, writes = _portion(thread, at)
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
        at = child.id if child is not None and child.parent is not None and len(rows) == PORTION else None


def _portion(thread: ThreadRun, tip: UUID) -> tuple[list[CheckpointRow], dict[UUID, list[Write]]]:
    rows: list[CheckpointRow] = []
    writes: dict[UUID, list[Write]] = {}
    for _, task, path, *columns in run_sql(_PATH, [tip, Int8(thread.run_id), Int4(PORTION)]):
        row = CheckpointRow._make(columns)
        if task is None:
            rows.append(row)
            continue
        content = pending.content(row.run_id, row.id, task, row.seq, path, row.codec, row.payload, row.digest)
        writes.setdefault(row.id, []).extend(Write(path, task, *write) for write in content)
    return rows, writes
