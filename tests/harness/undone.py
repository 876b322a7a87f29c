"""Writes that leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


@contextmanager
def undone() -> Iterator[None]:
    """Undo all that is written within, though decisions open durable transactions in it."""
    outer = transaction.atomic()
    outer._from_testcase = True  # type: ignore[attr-defined]
    with outer:
        yield
        transaction.set_rollback(True)
