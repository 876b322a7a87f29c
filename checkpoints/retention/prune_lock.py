"""One process at a time takes a prune further: what two did at once they would only take from each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

LOCK = 0x686F6C64_70727565  # of the session: a process that dies lets go of it


@contextmanager
def alone(*, wait: bool = False) -> Iterator[bool]:
    """Hold the lock on prunes for as long as the block lasts; yield False where another process has it.

    `wait`: wait for the slice that the other is at, no longer than a statement may take.
    """
    with connection.cursor() as cursor:
        if wait:
            cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            mine = True
        else:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
            mine = bool(cursor.fetchone()[0])
    try:
        yield mine
    finally:
        if mine and connection.connection is not None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
