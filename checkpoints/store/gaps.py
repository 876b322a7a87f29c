"""Gap rows: makes one for a removed stretch, reads the removed headers from it, and checks it.

A gap's digest covers all its columns and the gap before it in its run, with the seal's key if one is set; the event
of the removal, which seals cover, names the newest gap. Its headers have to give exactly the digests that the rows
around it name, so a gap that is forged, widened or moved does not fit between them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from checkpoints.actors import Actor
from checkpoints.errors import NotVerified
from checkpoints.events import event_proof
from checkpoints.models import Gap, Run
from checkpoints.postgresql.sql import to_microseconds
from checkpoints.values.canonical_json import encode_canonical

from . import gap_headers
from .gap_headers import RemovedCheckpoint
from .header import CheckpointHeader, trace_ancestry


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
        parent_digest=rows[0].header[gap_headers.PARENT_DIGEST], removed=gap_headers.over(rows),
        last_digest=rows[-1].digest, headers=gap_headers.pack(rows), policy=why.policy, policy_version=why.version,
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
    return gap_headers.unpack(bytes(gap.headers), run_id=gap.run_id, first=gap.first_seq)


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
    if gap_headers.over(rows) != bytes(gap.removed):
        found.append("its headers are not those of what was removed")
    if _hex(rows[0].header[gap_headers.PARENT_DIGEST]) != _hex(gap.parent_digest):
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
