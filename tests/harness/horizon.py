"""The horizon below which events may be read and sealed: any transaction of the whole server holds it back."""

from __future__ import annotations

from checkpoints.events import commit_order

from .waiting import until


def reached() -> None:
    """Wait until everything that is committed can be read, whatever processes and PostgreSQL itself still have open."""
    until(lambda: not commit_order.read_after(commit_order.newest_cursor())[1], what="events below the horizon")
