"""The audit as CSV: a spreadsheet shows it and runs none of it, and no value begins a row."""

from __future__ import annotations

import csv
import io

import pytest

from approvals.audit import exporting
from checkpoints.actors import Actor
from checkpoints.audit.filters import AuditFilters
from checkpoints.events import event_log
from tests.factories import unique
from tests.harness import horizon


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\uff1d1", "'\uff1d1"),
        ("\uff0b1", "'\uff0b1"),
        ("\uff0d1", "'\uff0d1"),
        ("\uff20x", "'\uff20x"),
        ("  =1", "  '=1"),
        ("\t=1", "'\\u0009=1"),
        ("\r=1", "'\\u000d=1"),
        ("\n=1", "'\\u000a=1"),
        ("a;=1", "a;'=1"),
        ("a\t=1", "a\\u0009'=1"),
        ('a;"=1', "a;\"'=1"),
        ('""=1', '""\'=1'),
        ("\ufeff\u200b=1", "\ufeff\u200b'=1"),
        ("a=1", "a=1"),
        ("two\r\nlines", "two\\u000d\\u000alines"),
        ("\u202eevil", "\\u202eevil"),
        ('say "hi", you', 'say "hi", you'),
        ("Grüße", "Grüße"),
        ("", ""),
    ],
)
def test_a_value_is_shown_and_never_run(value: str, shown: str) -> None:
    """Behind a semicolon and a quote one was run: where the cell is split, the quote is an empty one's, and is gone."""
    assert exporting.safe(value) == shown


def test_the_file_is_read_back_row_by_row_whatever_is_in_it() -> None:
    name = unique('=cmd|"/c calc"!A1\r\n2026,forged')
    event_log.record("test.said", subject=unique("test:csv"), by=Actor("user:7", name), data={"a": "=1", "b": "x\ny"})
    subject = unique("test:two")
    event_log.record("test.said", subject=subject, by=Actor("user:7", name), data={"a": "=1", "b": "x\ny"})
    horizon.reached()
    export = exporting.prepare(AuditFilters(subject=subject), format="csv", texts=False, by=Actor("user:1", "Ann"))
    data = b"".join(export.lines)
    assert data.startswith(b'\xef\xbb\xbf"time (UTC)"')
    head, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    assert tuple(head) == exporting.COLUMNS
    (row,) = rows
    assert len(row) == len(head)
    assert row[head.index("who")].startswith("'=cmd")
    assert data.count(b"\r\n") == 2
    assert data.count(b"\n") == 2
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for cell in row)
