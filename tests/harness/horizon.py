"""The horizon below which events may be read and sealed: any transaction of the whole server holds it back."""

from __future__ import annotations

from checkpoints.events import commit_order

from .waiting import until


def reached() -> None:
    """Wait until everything that is committed can be read, whatever processes and PostgreSQL itself still have open."""
    until(lambda: not commit_order.after(commit_order.newest())[1], what="events below the horizon")
