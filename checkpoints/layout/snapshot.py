"""Snapshots: saved states in memory, and the draft of the row that follows one. No database access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings

from checkpoints.errors import StateTooLarge, ValueRefused
from checkpoints.layout import payloads
from checkpoints.postgresql import wire
from checkpoints.values import digests
from checkpoints.values.canonical_json import encode_canonical, is_utf8
from checkpoints.values.digests import ListDigest
from checkpoints.values.json_pointer import make_pointer
from checkpoints.values.ops import Write

from .parts import Part, StateChanges
from .rows import CheckpointRow, new_id

ANCHOR_EVERY = 64  # rows; a load reads at most as many


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A checkpoint with its state. `state` is shared and must not be changed; `fields` are its digests."""

    run_id: int
    lineage: int
    plan_id: int
    id: UUID
    seq: int
    digest: bytes
    state: dict[str, Any]
    fields: dict[str, bytes]
    state_digest: bytes
    next_step: str
    at: datetime
    token: int
    anchor_seq: int = field(repr=False)
    parts: dict[str, Part] = field(repr=False)
    size: int = field(repr=False)  # bytes of canonical JSON
    list_format: type[ListDigest] = field(repr=False)  # the format of its lists' digests, which its run keeps

    def differing(self, other: Snapshot) -> frozenset[str]:
        """Return the names of the fields whose digests differ."""
        return frozenset(name for name, _ in self.fields.items() ^ other.fields.items())


class Header(NamedTuple):
    """The columns of a new checkpoint that its writer decides."""

    kind: str
    step: str
    next_step: str
    occurrence: int = 0
    attempt: int = 1
    input_digest: bytes | None = None
    code_hash: bytes | None = None
    took_us: int = 0


class CheckpointPlace(NamedTuple):
    """The place of a new checkpoint: its run, plan and number, the token of the claim, and the time."""

    run_id: int
    lineage: int
    plan_id: int
    seq: int
    token: int
    at: datetime


@dataclass(slots=True)
class RowDraft:
    """A row about to be written, its header in binary form, and its chunks."""

    row: CheckpointRow
    header: list[wire.Value]
    lineage: int
    changes: StateChanges
    fields: dict[str, bytes]
    size: int
    cached_snapshot: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        """Return the snapshot that the row will be once written. Made once, possibly while the database writes."""
        if self.cached_snapshot is None:
            row = self.row
            self.cached_snapshot = Snapshot(
                row.run_id, self.lineage, row.plan_id, row.id, row.seq, row.digest, self.changes.finish(), self.fields,
                row.state_digest, row.next_step, row.at, row.token, row.anchor_seq, self.changes.parts, self.size,
                self.changes.list_format,
            )  # fmt: skip
        return self.cached_snapshot


def draft_row(
    base: Snapshot | None,
    writes: Mapping[str, Write],
    header: Header,
    place: CheckpointPlace,
    *,
    list_format: type[ListDigest],
    id: UUID | None = None,
) -> RowDraft:
    """Draft the row that follows `base`, its chunks, and its snapshot. `list_format`: the format of the run's digests.

    Raises ValueRefused and StateTooLarge before anything is written.
    """
    state, known = (base.state, base.parts) if base else ({}, {})
    changes = StateChanges(dict(state), dict(known), list_format)
    for name, value in writes.items():
        _check_name(name)
        changes.write(name, value)
    size = _size(base, changes.parts, writes)
    anchor = place.seq
    if base and (base.run_id, base.seq) == (place.run_id, place.seq - 1) and place.seq - base.anchor_seq < ANCHOR_EVERY:
        anchor = base.anchor_seq
    if anchor == place.seq:
        changes.seal(record=header.input_digest is not None)
    fields = {name: part.digest for name, part in changes.parts.items()}
    state_digest = digests.of_state(fields)
    codec, payload = payloads.pack(payloads.join(changes.ops, changes.lines), wide=changes.wide)
    row = CheckpointRow(
        id=id or new_id(), run_id=place.run_id, plan_id=place.plan_id, seq=place.seq, parent=base.id if base else None,
        parent_digest=base.digest if base else None, **header._asdict(), token=place.token, at=place.at,
        state_digest=state_digest, digest=b"", anchor_seq=anchor, codec=codec | list_format.CODEC, payload=payload,
        checksum=b"",
    )  # fmt: skip
    columns = row.header()
    row = _sealed(row, columns)
    return RowDraft(row, columns, place.lineage, changes, fields, size)


def _sealed(row: CheckpointRow, header: list[wire.Value]) -> CheckpointRow:
    """Return the row with its digest and its checksum."""
    digest = digests.of_header(header)
    checksum = payloads.row_checksum(digest, row.anchor_seq, row.codec, row.payload)
    return row._replace(digest=digest, checksum=checksum)


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise ValueRefused("", f"has the field name {name!r}, which is no text")
    if not is_utf8(name):
        raise ValueRefused("", f"has the field name {name!r} with a lone surrogate")


def weight(name: str, part: Part | None) -> int:
    """Return the bytes that a field adds to its state's size: its quoted name, a colon, its value and a comma."""
    return _name_size(name) + part.size + 2 if part else 0


@lru_cache(1024)
def _name_size(name: str) -> int:
    return len(encode_canonical(name))


def size_of(after: Mapping[str, Part]) -> int:
    """Return the size of a state that was put together from scratch."""
    return 2 + sum(weight(name, part) for name, part in after.items())


def _size(base: Snapshot | None, after: dict[str, Part], writes: Mapping[str, Write]) -> int:
    """Compute the state's size, from its size before and the fields written. Raises StateTooLarge."""
    size = base.size if base else 2
    for name in writes:
        size += weight(name, after.get(name)) - weight(name, base.parts.get(name) if base else None)
    limit = settings.HOLDPOINT_STATE_LIMIT
    if size > limit and (base is None or size > base.size):
        culprit = max(writes, key=lambda name: weight(name, after.get(name)))
        raise StateTooLarge(
            make_pointer(culprit),
            f"is the largest field written to a state of {size:,} bytes; the limit is {limit:,}: write less, or keep "
            "large files as artifacts",
        )
    return size
