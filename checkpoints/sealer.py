"""Sealing: what makes a rewritten past show.

Events are not chained as they are written, which would make all writers wait for one row. Every second a sealer
takes the settled events since the last seal, in order, and appends a seal: their range and Merkle root (as in
RFC 6962), the head of each run they touch, and the seal before. A key (HOLDPOINT_SEAL_KEY) makes it an HMAC, so
that whoever can write the database still cannot forge it; the log and a file outside keep what was sealed, so
that a cut tail shows. `checkpoint.saved` is covered by its run's chain of digests instead.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Max, QuerySet

from .cursor import Cursor, beyond, settled, until
from .ledger import text_digest
from .models import Checkpoint, Event, EventText, Gap, Run, Seal
from .retention import gaps
from .rows import microseconds, run_sql
from .values import canonical, decode

LOCK = 0x686F6C6470  # pg_advisory_xact_lock key of the one sealer
BATCH = 10_000
log = structlog.get_logger(__name__)


class Problem(NamedTuple):
    """Something stored that is not what was written. `subject` names it, "checkpoint <id>" or "seal 7"."""

    subject: str
    reason: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


def leaf(event: Event) -> bytes:
    """The digest of one event, over all its columns."""
    columns = [
        event.pk, event.xid, microseconds(event.at), event.kind, event.run_id, event.team_id, event.subject,
        event.version, event.actor, event.actor_name, bytes(event.data).hex(),
        None if event.text_digest is None else bytes(event.text_digest).hex(),
    ]  # fmt: skip
    return hashlib.sha256(b"\0" + canonical(columns)).digest()


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """The root over one or more leaves; an odd node at the end goes up as it is, as RFC 6962 has it."""
    level = list(leaves)
    while len(level) > 1:
        pairs = [hashlib.sha256(b"\1" + a + b).digest() for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(level) & ~1 :]
    return level[0]


def seal_once() -> Seal | None:
    """Seal what settled since the last seal; None where there is nothing, or another sealer is at it."""
    with transaction.atomic():
        if not run_sql("SELECT pg_try_advisory_xact_lock($1)", [LOCK])[0][0]:
            return None
        last = Seal.objects.order_by("-pk").first()
        events = list(_unsealed(last)[:BATCH])
        if not events:
            return None
        seal = _made(events, last)
        seal.save(force_insert=True)
        transaction.on_commit(lambda: _export(seal))
    return seal


def _unsealed(last: Seal | None) -> QuerySet[Event]:
    events = settled().exclude(kind="checkpoint.saved")
    return beyond(events, Cursor(last.last_xid, last.last_id)) if last else events


def _made(events: list[Event], last: Seal | None) -> Seal:
    touched = {event.run_id for event in events if event.run_id is not None}
    heads = dict(Run.objects.filter(pk__in=touched).values_list("pk", "head"))
    found = dict(
        Checkpoint.objects.filter(pk__in=[head for head in heads.values() if head]).values_list("pk", "digest")
    )
    seal = Seal(
        at=run_sql("SELECT clock_timestamp()", [])[0][0],
        first_xid=events[0].xid, first_id=events[0].pk, last_xid=events[-1].xid, last_id=events[-1].pk,
        count=len(events), merkle_root=merkle_root([leaf(event) for event in events]),
        heads=canonical({str(run): bytes(found[head]).hex() for run, head in heads.items() if head in found}),
        previous=bytes(last.digest) if last else None,
    )  # fmt: skip
    seal.digest = digest_of(seal)
    return seal


def digest_of(seal: Seal) -> bytes:
    """What a seal's digest has to be, with the key as it is set now."""
    columns = [
        microseconds(seal.at), seal.first_xid, seal.first_id, seal.last_xid, seal.last_id, seal.count,
        bytes(seal.merkle_root).hex(), bytes(seal.heads).hex(), bytes(seal.previous).hex() if seal.previous else None,
    ]  # fmt: skip
    data = b"holdpoint seal\n" + canonical(columns)
    key = getattr(settings, "HOLDPOINT_SEAL_KEY", "")
    return hmac.digest(key.encode(), data, "sha256") if key else hashlib.sha256(data).digest()


def export_path() -> Path:
    """Where sealed heads are appended, one JSON object a line."""
    return Path(settings.HOME) / "audit" / "seals.jsonl"


def _export(seal: Seal) -> None:
    fact = {
        "seal": seal.pk,
        "at": seal.at.isoformat(),
        "digest": seal.digest.hex(),
        "last": str(Cursor(seal.last_xid, seal.last_id)),
        "count": seal.count,
        "heads": decode(bytes(seal.heads)),
    }
    log.info("audit.sealed", **fact)
    try:
        path = export_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(fact) + "\n")
    except OSError as error:
        log.error("audit.cannot_export", error=str(error))


def verify_seals() -> list[Problem]:
    """Check every seal against the seal before, its events, their texts, its runs' heads, and the export."""
    problems: list[Problem] = []
    before: Seal | None = None
    for seal in Seal.objects.order_by("pk").iterator(chunk_size=500):
        problems += [Problem(f"seal {seal.pk}", reason) for reason in _faults(seal, before)]
        before = seal
    return problems + _export_faults()


def _faults(seal: Seal, before: Seal | None) -> list[str]:
    found = []
    if (bytes(seal.previous) if seal.previous else None) != (bytes(before.digest) if before else None):
        found.append("does not follow the seal before it")
    if digest_of(seal) != bytes(seal.digest):
        found.append("its columns do not match its digest")
    events = list(until(_unsealed(before), Cursor(seal.last_xid, seal.last_id)))
    if len(events) != seal.count:
        found.append(f"sealed {seal.count} events, there are {len(events)}")
    elif events and merkle_root([leaf(event) for event in events]) != bytes(seal.merkle_root):
        found.append(f"an event between {events[0].pk} and {events[-1].pk} is not what was sealed")
    return found + _text_faults(events) + _head_faults(seal)


def _text_faults(events: list[Event]) -> list[str]:
    spoken = {event.pk: bytes(event.text_digest) for event in events if event.text_digest is not None}
    return [
        f"the text of event {words.pk} is not what was written"
        for words in EventText.objects.filter(pk__in=spoken)
        if text_digest(bytes(words.salt), bytes(words.text)) != spoken[words.pk]
    ]


def _head_faults(seal: Seal) -> list[str]:
    try:
        heads: dict[str, Any] = decode(bytes(seal.heads))
        wanted = {int(run): bytes.fromhex(digest) for run, digest in heads.items()}
    except (ValueError, AttributeError, TypeError):
        return ["its heads cannot be read"]
    found = Checkpoint.objects.filter(run_id__in=wanted, digest__in=wanted.values()).values_list("run_id", "digest")
    there = {(run, bytes(digest)) for run, digest in found}
    missing = {run: digest for run, digest in wanted.items() if (run, digest) not in there}
    pruned = dict(
        Gap.objects.filter(run__in=missing).values("run_id").annotate(n=Max("number")).values_list("run_id", "n")
    )
    lost = [run for run, digest in missing.items() if digest not in gaps.digests_of(run, pruned.get(run, 0))]
    return [f"the head that run {run} had is gone" for run in lost]


def _export_faults() -> list[Problem]:
    """Seals that the export knows and the table lost, or has otherwise; and lines that are no seals."""
    try:
        lines = export_path().read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    known = {bytes(digest).hex() for digest in Seal.objects.values_list("digest", flat=True)}
    problems = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            fact = json.loads(line)
            digest, seal = fact["digest"], fact["seal"]
        except (ValueError, KeyError, TypeError):
            problems.append(Problem(f"line {number} of {export_path().name}", "cannot be read"))
            continue
        if digest not in known:
            problems.append(Problem(f"seal {seal}", "was exported and is gone"))
    return problems
