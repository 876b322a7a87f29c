"""Exports events; who exported which is in the audit before the first byte leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import transaction
from django.db.models import QuerySet

from checkpoints.actors import Actor
from checkpoints.audit import export
from checkpoints.audit.export import ExportRequest
from checkpoints.audit.filters import AuditFilters
from checkpoints.events import commit_order, event_log, event_proof
from checkpoints.events.event import EventQuerySet
from checkpoints.models import Event

from . import csv_table

TYPES = {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8"}


@dataclass(frozen=True)
class AuditExport:
    """One export: its lines, the number of its events, and the name of its file."""

    lines: Iterator[bytes]
    count: int
    name: str


def prepare(
    filters: AuditFilters, *, format: str, texts: bool, by: Actor, visible: EventQuerySet | None = None
) -> AuditExport:
    """Record an export in the audit, and return it. `visible`: the events that may be seen; by default all.

    Only settled events are exported, so the count is exact; the event of this export is not among them.
    """
    seen = (Event.objects.all() if visible is None else visible).sealable()
    upto = commit_order.newest_cursor()
    events = filters.apply(seen)
    parts = [commit_order.events_until(part, upto) for part in filters.searched(events, all_texts=True)]
    now = datetime.now(UTC)
    asked = ExportRequest(
        events=events, upto=upto, keep=filters.matching, filters=filters.to_json(), made_at=now.isoformat(), by=by.name,
        texts=texts,
    )  # fmt: skip
    name = f"holdpoint-audit-{now:%Y%m%dT%H%M%SZ}.{format}"
    with transaction.atomic():
        count = count_of(parts)
        data = {"format": format, "filters": asked.filters, "count": count, "texts": texts, "upto": str(upto)}
        event_log.record("audit.exported", subject=f"export:{now:%Y%m%dT%H%M%S%f}Z", by=by, data=data)
    if format == "csv":
        return AuditExport(csv_table.lines(export.events_without_proofs(asked)), count, name)
    return AuditExport(export.lines(asked, key=event_proof.seal_key()), count, name)


def count_of(parts: list[QuerySet[Event]]) -> int:
    """Count the events that are in any of these."""
    first, *others = [part.order_by().values("pk") for part in parts]
    return (first.union(*others) if others else first).count()
