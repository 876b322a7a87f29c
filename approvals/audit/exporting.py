"""Exports events; who exported which is in the audit before the first byte leaves.

The lines of JSON are the exact form. The table for people is CSV that a spreadsheet shows and does not run: a cell that
begins like a formula gets an apostrophe before it (OWASP, "CSV Injection"), full-width forms and what follows a
semicolon or a tab included, since some spreadsheets split there; quotes and what nobody sees hide no beginning. Line
breaks and other control characters are written as their code points, so that no value can begin a row. All cells are
quoted. A byte order mark comes first: without one Excel reads UTF-8 as something else; LibreOffice and Python's
utf-8-sig leave it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import transaction

from checkpoints.actors import Actor
from checkpoints.audit import export
from checkpoints.audit.export import ExportedEvent, ExportRequest
from checkpoints.audit.filters import AuditFilters
from checkpoints.events import commit_order, event_log, event_proof
from checkpoints.events.event import EventQuerySet
from checkpoints.models import Event
from checkpoints.seals.seal import format_instant
from checkpoints.values.characters import escape_controls

from . import event_words

COLUMNS = (
    "time (UTC)", "event", "kind", "who", "what", "actor", "team", "run", "subject", "version", "data", "text",
    "cursor",
)  # fmt: skip
_FORMULA = re.compile(r"(^|[;\t])([\s\"\u200b-\u200f\u2060\ufeff]*)([=+\-@\uff1d\uff0b\uff0d\uff20])")
TYPES = {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8"}


def lines(events: Iterable[ExportedEvent]) -> Iterator[bytes]:
    """Yield the table, line by line."""
    yield b"\xef\xbb\xbf" + _line(COLUMNS)
    for event in events:
        yield _line(cells(event))


def cells(event: ExportedEvent) -> tuple[str, ...]:
    """Return the cells of one event."""
    row = event.row
    happening = event_words.of_row(row)
    at = format_instant(row.at) if row.at is not None else ""
    team, run = ("" if number is None else str(number) for number in (row.team_id, row.run_id))
    data = row.data.decode(errors="replace")
    text = event.text[1].decode(errors="replace") if event.text else ""
    cursor = f"{row.xid}.{row.id}"
    return (
        at, str(row.id), row.kind, happening.who, happening.what, row.actor, team, run and f"R-{run}", row.subject,
        str(row.version), data, text, cursor,
    )  # fmt: skip


def safe(text: str) -> str:
    """Return a value that no spreadsheet takes for a formula, on one line."""
    text = _FORMULA.sub(r"\1\2'\3", text) if not text.startswith(("\t", "\r", "\n")) else f"'{text}"
    return escape_controls(text)


def _line(values: Iterable[str]) -> bytes:
    quoted = ('"' + safe(value).replace('"', '""') + '"' for value in values)
    return ",".join(quoted).encode() + b"\r\n"


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
        first, *others = [part.order_by().values("pk") for part in parts]
        count = (first.union(*others) if others else first).count()
        data = {"format": format, "filters": asked.filters, "count": count, "texts": texts, "upto": str(upto)}
        event_log.record("audit.exported", subject=f"export:{now:%Y%m%dT%H%M%S%f}Z", by=by, data=data)
    if format == "csv":
        return AuditExport(lines(export.events_without_proofs(asked)), count, name)
    return AuditExport(export.lines(asked, key=event_proof.seal_key()), count, name)
