"""Gap rows: makes one for a removed stretch, reads the removed headers from it, and checks it.

A gap's digest covers all its columns and the gap before it in its run, with the seal's key if one is set; the event
of the removal, which seals cover, names the newest gap. Its headers have to give exactly the digests that the rows
around it name, so a gap that is forged, widened or moved does not fit between them.

A removed checkpoint's header is everything that its digest covers, and nothing of its state. Headers are stored column
by column, in PostgreSQL's binary form, since similar values next to each other compress best. A column is the length
of every value, -1 for NULL, and then the values. Run and number are left out, since they follow from the position; if
the parent is the row before, its two columns are empty.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast
from uuid import UUID

import zstandard

from checkpoints.actors import Actor
from checkpoints.errors import NotVerified
from checkpoints.events import event_proof
from checkpoints.layout.rows import HEADER, TYPES
from checkpoints.models import Gap, Run
from checkpoints.postgresql import wire
from checkpoints.postgresql.sql import to_microseconds
from checkpoints.values import digests
from checkpoints.values.canonical_json import encode_canonical

from .loading import COLUMNS, CheckpointHeader, trace_ancestry

ID, RUN, SEQ, PARENT, PARENT_DIGEST = map(HEADER.index, ("id", "run_id", "seq", "parent", "parent_digest"))
_STORED = [item for item in range(len(HEADER)) if item not in (RUN, SEQ)]
_REMOVED = b"holdpoint removed\n"
_LARGEST = 256 * 1024 * 1024

BinaryHeader = Sequence[bytes | None]  # the columns of HEADER, in binary form


class RemovedCheckpoint(NamedTuple):
    """One removed checkpoint: its header and its digest."""

    header: BinaryHeader
    digest: bytes

    @property
    def id(self) -> UUID:
        return UUID(bytes=self.header[ID])

    def decoded(self) -> CheckpointHeader:
        """Return the header as the history of a lineage has it."""
        values: dict[str, Any] = {
            name: None if column is None else TYPES[name].value(column)
            for name, column in zip(HEADER, self.header, strict=True)
            if name in COLUMNS
        }
        return CheckpointHeader(**values, removed=True)


def pack_headers(rows: Sequence[RemovedCheckpoint]) -> bytes:
    """Pack the headers of one stretch of a run, in order."""
    columns = [list(column) for column in zip(*(row.header for row in rows), strict=True)]
    parents, parent_digests = columns[PARENT], columns[PARENT_DIGEST]
    for number, before in enumerate(columns[ID][:-1], start=1):
        if parents[number] == before:
            parents[number] = parent_digests[number] = b""
    made = [struct.pack("!i", len(rows))]
    for column in (columns[item] for item in _STORED):
        try:
            lengths = list(map(len, cast(list[bytes], column)))
        except TypeError:  # of a NULL, which few columns have
            lengths = [-1 if value is None else len(value) for value in column]
        made.append(struct.pack(f"!{len(rows)}i", *lengths))
        made += filter(None, column)
    return zstandard.ZstdCompressor(level=3).compress(b"".join(made))


class _Reader:
    """Reads columns from the front of the bytes. Raises ValueError if they end too early."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def ints(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"!{count}i", self.take(4 * count))

    def take(self, length: int) -> bytes:
        if not 0 <= length <= len(self.content) - self.at:
            raise ValueError("the headers end too early")
        self.at += length
        return self.content[self.at - length : self.at]

    def column(self, count: int) -> list[bytes | None]:
        return [None if length == -1 else self.take(length) for length in self.ints(count)]


def unpack_headers(data: bytes, *, run_id: int, first: int) -> Iterator[RemovedCheckpoint]:
    """Yield the removed checkpoints of a gap that begins at number `first`, in order. Raises ValueError."""
    try:
        reader = _Reader(zstandard.ZstdDecompressor().decompress(data, max_output_size=_LARGEST))
    except zstandard.ZstdError as error:
        raise ValueError(f"bad frame: {error}") from error
    (count,) = reader.ints(1)
    columns = {item: reader.column(count) for item in _STORED}
    run, before = wire.int8(run_id), cast(tuple[bytes | None, bytes | None], (None, None))
    for number in range(count):
        row: list[bytes | None] = [None] * len(HEADER)
        row[RUN], row[SEQ] = run, wire.int4(first + number)
        for item, column in columns.items():
            row[item] = column[number]
        if row[PARENT] == b"":
            row[PARENT], row[PARENT_DIGEST] = before
        digest = digests.of_header(row)
        before = (row[ID], digest)
        yield RemovedCheckpoint(row, digest)


def hash_digests(rows: Iterable[RemovedCheckpoint]) -> bytes:
    """Hash the digests of the removed checkpoints, in order."""
    return hashlib.sha256(_REMOVED + b"".join(row.digest for row in rows)).digest()


class RemovalReason(NamedTuple):
    """The policy, the actor and the time of a removal; `at` is set again under the lock of the run."""

    policy: str
    version: int
    by: Actor
    at: datetime


def make_gap(
    run_id: int,
    first: int,
    rows: Sequence[RemovedCheckpoint],
    before: Gap | None,
    why: RemovalReason,
) -> Gap:
    """Make the unsaved gap for rows that begin at number `first`; `before` is the run's newest gap."""
    gap = Gap(
        run_id=run_id, number=before.number + 1 if before else 1, first_seq=first, last_seq=first + len(rows) - 1,
        parent_digest=rows[0].header[PARENT_DIGEST], removed=hash_digests(rows),
        last_digest=rows[-1].digest, headers=pack_headers(rows), policy=why.policy, policy_version=why.version,
        by=why.by.id, by_name=why.by.name, at=why.at, previous=before.digest if before else None,
    )  # fmt: skip
    gap.digest = digest_of(gap)
    return gap


def digest_of(gap: Gap, key: bytes | None = None) -> bytes:
    """Compute a gap's expected digest under a key, empty for none; by default under the key that is set."""
    columns = [
        gap.run_id, gap.number, gap.first_seq, gap.last_seq, _hex(gap.parent_digest), _hex(gap.removed),
        _hex(gap.last_digest), hashlib.sha256(bytes(gap.headers)).hexdigest(), gap.policy, gap.policy_version, gap.by,
        gap.by_name, to_microseconds(gap.at), _hex(gap.previous),
    ]  # fmt: skip
    data = b"holdpoint gap\n" + encode_canonical(columns)
    if key is None:
        key = event_proof.seal_key()
    return hmac.digest(key, data, "sha256") if key else hashlib.sha256(data).digest()


def removed(gap: Gap) -> Iterator[RemovedCheckpoint]:
    """Return a gap's removed checkpoints, in order. Raises ValueError if its headers cannot be read."""
    return unpack_headers(bytes(gap.headers), run_id=gap.run_id, first=gap.first_seq)


def faults(gap: Gap, before: Gap | None) -> list[str]:
    """Return what is wrong with a gap's headers and its place after the gap before it.

    `audit.removals` checks its digest.
    """
    found = []
    if gap.number != (before.number + 1 if before else 1) or _hex(gap.previous) != _hex(
        before.digest if before else None
    ):
        found.append("does not follow the gap before it")
    try:
        rows = list(removed(gap))
        _ = [row.id for row in rows]
    except (ValueError, TypeError) as error:
        return [*found, f"its headers cannot be read ({error})"]
    if len(rows) != gap.last_seq - gap.first_seq + 1:
        return [*found, f"it spans {gap.last_seq - gap.first_seq + 1} checkpoints and has the headers of {len(rows)}"]
    if hash_digests(rows) != bytes(gap.removed):
        found.append("its headers are not those of what was removed")
    if _hex(rows[0].header[PARENT_DIGEST]) != _hex(gap.parent_digest):
        found.append("it does not begin after the checkpoint it names")
    if rows[-1].digest != bytes(gap.last_digest):
        found.append("it does not end at the checkpoint it names")
    return found


def records_of(lineage: int) -> dict[UUID, CheckpointHeader]:
    """Return all removed checkpoints of a run and its forks, by id."""
    found = Gap.objects.filter(run__in=Run.objects.of_lineage(lineage)).order_by("run_id", "number")
    return {row.id: row for gap in found.iterator(chunk_size=20) for row in _records(gap)}


class RemovedPast:
    """The removed checkpoints of a run's lineage, unpacked gap by gap, only as far as a path needs them."""

    def __init__(self, run_id: int) -> None:
        lineage = Run.objects.values_list("lineage", flat=True).filter(pk=run_id).first()
        found = Gap.objects.filter(run__in=Run.objects.of_lineage(lineage or run_id)).order_by("run_id", "first_seq")
        self._left = list(found.values_list("run_id", "first_seq", "pk"))
        self._known: dict[UUID, CheckpointHeader] = {}

    def leading_to(self, tip: UUID, child: CheckpointHeader) -> list[CheckpointHeader]:
        """Return the removed checkpoints that lead to `tip`, itself last, back to the first that is not unpacked.

        `child` follows `tip`; it is not removed, or was found by the last call. Gaps younger than `child` are skipped.
        """
        while tip not in self._known and self._left:
            *place, pk = self._left.pop()
            if tuple(place) < (child.run_id, child.seq):
                self._known |= {row.id: row for row in _records(Gap.objects.get(pk=pk))}
        return trace_ancestry(tip, self._known, child)


def _records(gap: Gap) -> list[CheckpointHeader]:
    try:
        return [row.decoded() for row in removed(gap)]
    except ValueError as error:
        raise NotVerified(str(gap), f"its headers cannot be read ({error})") from error


def over(run_id: int, seq: int) -> Gap | None:
    """Find the gap that includes this number of a run."""
    return Gap.objects.filter(run_id=run_id, first_seq__lte=seq, last_seq__gte=seq).defer("headers").first()


def find_gap(checkpoint: UUID, runs: Any) -> tuple[Gap, CheckpointHeader] | None:
    """Find the gap of one of these runs that removed a checkpoint; return the gap and the checkpoint's header."""
    for gap in Gap.objects.filter(run__in=runs).order_by("run_id", "number").iterator(chunk_size=20):
        for row in removed(gap):
            if row.id == checkpoint:
                return gap, row.decoded()
    return None


def _hex(value: bytes | memoryview | None) -> str | None:
    return None if value is None else bytes(value).hex()
