"""The lock by which only one process at a time works on prunes: two would only compete for the same work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

LOCK = 0x686F6C64_70727565  # a session's lock: released when the process dies


@contextmanager
def hold_prune_lock(*, wait: bool = False) -> Iterator[bool]:
    """Hold the lock on prunes inside the block; yield False if another process has it.

    `wait`: wait for the other process to finish its slice, no longer than a statement may take.
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
