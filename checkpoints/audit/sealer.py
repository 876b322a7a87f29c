"""The sealer: appends seals over the events, so that later changes to events can be detected.

Events are not chained as they are written, which would make all writers wait for one row. Every second a sealer
takes the settled events since the last seal, in order, and appends a seal. A key (HOLDPOINT_SEAL_KEY) makes its digest
an HMAC, which cannot be forged with write access to the database alone; the log and a file outside repeat the seals,
so that missing newest ones are noticed. `checkpoint.saved` is covered by its run's chain of digests instead.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from checkpoints.events.commit_order import Cursor, events_after, settled_events
from checkpoints.events.event_proof import seal_key
from checkpoints.models import Checkpoint, Event, Run, Seal
from checkpoints.postgresql.sql import run_sql
from checkpoints.seals import leaves, merkle
from checkpoints.values.canonical_json import encode_canonical

from .reading import row_of, seal_fact

LOCK = 0x686F6C6470  # pg_advisory_xact_lock key of the one sealer
BATCH = 10_000
COUNTED = 1_000
LATE = timedelta(minutes=1)  # a sealer passes every second
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class UnsealedTail:
    """The settled events that no seal covers yet: their number, up to COUNTED, and the time of the oldest."""

    count: int
    oldest: datetime | None
    late: bool


def export_path() -> Path:
    """Return the path of the file to which seals are appended, one JSON object a line."""
    return Path(settings.HOME) / "audit" / "seals.jsonl"


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


def seal_once() -> Seal | None:
    """Seal what settled since the last seal; None if there is nothing, or another sealer is working."""
    with transaction.atomic():
        if not run_sql("SELECT pg_try_advisory_xact_lock($1)", [LOCK])[0][0]:
            return None
        last = Seal.objects.order_by("-pk").first()
        events = list(unsealed_events(last)[:BATCH])
        if not events:
            return None
        seal = _make_seal(events, last)
        seal.save(force_insert=True)
        transaction.on_commit(lambda: _export(seal))
    return seal


def lag() -> float:
    """Return the seconds for which the oldest event that could be sealed has waited; 0.0 if none waits."""
    waiting = unsealed_events(newest_seal())
    oldest = waiting.annotate(age=Now() - F("at")).values_list("age", flat=True).first()
    return oldest.total_seconds() if oldest else 0.0


def _make_seal(events: list[Event], last: Seal | None) -> Seal:
    rows = [row_of(event) for event in events]
    seal = Seal(
        at=run_sql("SELECT clock_timestamp()", [])[0][0],
        first_xid=rows[0].xid, first_id=rows[0].id, last_xid=rows[-1].xid, last_id=rows[-1].id,
        count=len(rows), merkle_root=merkle.root([leaves.compute_leaf(row) for row in rows]), marks=leaves.pack(rows),
        heads=_heads({row.run_id for row in rows if row.run_id is not None}),
        previous=bytes(last.digest) if last else None, digest=b"",
    )  # fmt: skip
    seal.digest = seal_fact(seal).expected(seal_key())
    return seal


def _heads(runs: set[int]) -> bytes:
    """Return the heads of these runs as canonical JSON: run id -> [number, digest]."""
    heads = dict(Run.objects.filter(pk__in=runs, head__isnull=False).values_list("pk", "head"))
    found = Checkpoint.objects.filter(pk__in=[head for head in heads.values() if head]).values_list(
        "pk", "seq", "digest"
    )
    places = {pk: [seq, bytes(digest).hex()] for pk, seq, digest in found}
    return encode_canonical({str(run): places[head] for run, head in heads.items() if head in places})


def _export(seal: Seal) -> None:
    fact = seal_fact(seal)
    log.info("audit.sealed", **fact.to_json(heads=False))
    try:
        path = export_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(fact.to_json()) + "\n")
    except OSError as error:
        log.error("audit.cannot_export", error=str(error))
