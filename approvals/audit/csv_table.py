"""The audit as a table for people: CSV that a spreadsheet shows and does not run.

A cell that begins like a formula gets an apostrophe before it (OWASP, "CSV Injection"), full-width forms and what
follows a semicolon or a tab included, since some spreadsheets split there; quotes and what nobody sees hide no
beginning. Line breaks and other control characters are written as their code points, so that no value can begin a row.
All cells are quoted. A byte order mark comes first: without one Excel reads UTF-8 as something else; LibreOffice and
Python's utf-8-sig leave it out. The lines of JSON are the exact form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from checkpoints.audit.export import ExportedEvent
from checkpoints.seals.seal import format_instant
from checkpoints.values.characters import escape_controls

from . import event_words

COLUMNS = (
    "time (UTC)",
    "event",
    "kind",
    "who",
    "what",
    "actor",
    "team",
    "run",
    "subject",
    "version",
    "data",
    "text",
    "cursor",
)
_FORMULA = re.compile(r"(^|[;\t])([\s\"\u200b-\u200f\u2060\ufeff]*)([=+\-@\uff1d\uff0b\uff0d\uff20])")


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
