"""Verifies everything that seals cover: the seals themselves, then the file of exported seals; counts the unsealed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Max, QuerySet

from checkpoints.events.commit_order import Cursor, events_after, settled_events
from checkpoints.events.event_proof import seal_key
from checkpoints.models import Event, Seal
from checkpoints.postgresql.sql import run_sql
from checkpoints.seals import anchors
from checkpoints.seals.problem import IntegrityProblem

from .walk import VerificationWalk

COUNTED = 1_000
NO_KEY = "no key is set (HOLDPOINT_SEAL_KEY): whoever can write the database could make seals and gaps again"
LATE = timedelta(minutes=1)  # a sealer passes every second


@dataclass(frozen=True)
class UnsealedTail:
    """The settled events that no seal covers yet: their number, up to COUNTED, and the time of the oldest."""

    count: int
    oldest: datetime | None
    late: bool


def export_path() -> Path:
    """Return the path of the file to which seals are appended, one JSON object a line."""
    return Path(settings.HOME) / "audit" / "seals.jsonl"


def begin(*, after: int = 0) -> VerificationWalk:
    """Begin a walk over the seals stored now, from the one after `after` on."""
    return VerificationWalk(seal_key(), after, Seal.objects.aggregate(upto=Max("pk"))["upto"] or 0)


def verify(
    *, after: int = 0, exported: Path | None = None, on_step: Callable[[VerificationWalk], object] = id
) -> Iterator[IntegrityProblem]:
    """Yield all problems as they are found. `on_step` is called after each step.

    Raises OSError if `exported` is named and cannot be read.
    """
    walk = begin(after=after)
    while not walk.done:
        yield from walk.step()
        on_step(walk)
    yield from walk.chain.digests()
    yield from exported_seals(exported, since=after)


def exported_seals(exported: Path | None = None, *, since: int = 0) -> Iterator[IntegrityProblem]:
    """Yield where the file of exported seals differs. If no file is named, a missing file is no problem."""
    path = exported or export_path()
    if exported is None and not path.exists():
        return
    with ExitStack() as stack:
        lines = stack.enter_context(path.open(encoding="utf-8", errors="replace"))
        yield from anchors.check(lines, _stored, key=seal_key(), name=path.name, since=since)


def total_seals(walk: VerificationWalk) -> int:
    """Return the number of seals that a walk will have checked at its end."""
    return walk.seals + Seal.objects.filter(pk__gt=walk.at, pk__lte=walk.upto).count()


def _stored(ids: list[int]) -> dict[int, bytes]:
    found = Seal.objects.filter(pk__in=ids).values_list("pk", "digest")
    return {pk: bytes(digest) for pk, digest in found}


def newest_seal() -> Seal | None:
    """Return the newest seal with only its place loaded; None if there is none."""
    return Seal.objects.only("last_xid", "last_id").order_by("-pk").first()


def unsealed_events(last: Seal | None) -> QuerySet[Event]:
    """Return the settled events after the newest seal, in order."""
    events = settled_events().exclude(kind="checkpoint.saved")
    return events_after(events, Cursor(last.last_xid, last.last_id)) if last else events


def tail() -> UnsealedTail:
    """Return how many events no seal covers yet, and how long the oldest has waited."""
    times = list(unsealed_events(newest_seal()).values_list("at", flat=True)[:COUNTED])
    oldest = min(times, default=None)
    now = run_sql("SELECT clock_timestamp()", [])[0][0]
    return UnsealedTail(len(times), oldest, bool(oldest and now - oldest > LATE))
