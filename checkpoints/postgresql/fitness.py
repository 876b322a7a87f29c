"""Checks that this PostgreSQL, and any pooler before it, meets the requirements. Each service asks before it works.

A session's settings and locks belong to one process only if each connection to a pooler is one to the server. A
pooler in transaction mode silently gives the server's sessions to the next client, and its configuration alone may
decide that; so it is tried out. A session that takes a lock and ends releases it, whereas a pooler in transaction mode
keeps the server's session open, and the lock remains.
"""

from __future__ import annotations

import secrets
import time
from functools import cache
from typing import Any

import psycopg
from django.db import connection

from checkpoints.errors import RestoredDatabase, UnfitDatabase

from . import xid_offset

ENDED_WITHIN = 3.0  # seconds in which a pooler has to reset a session after its client has left
POOLED = (
    "DATABASE_URL leads through a pooler that shares sessions by transaction: connect to PostgreSQL directly, or "
    "through a pooler in session mode."
)
_TAKE = "SELECT pg_advisory_lock(%s, %s)"  # random keys: a lock that remains is in nobody's way
_MINE = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND (classid, objid) = (%s, %s)"

Raw = psycopg.Connection[Any]


def fault(*, migrating: bool = False) -> str:
    """Return a sentence that says what is unfit, or ""; also "" if the server does not answer: `refuse` asks again.

    A restored database may only be migrated until `manage.py restored` was run.
    """
    try:
        return _find_fault(migrating=migrating)
    except psycopg.OperationalError:
        return ""


@cache
def refuse() -> None:
    """Refuse to work with an unfit database. Asks PostgreSQL until it has answered once in this process, then no more.

    Raises UnfitDatabase and the database's errors.
    """
    with connection.wrap_database_errors:
        if unfit := _find_fault():
            raise UnfitDatabase(unfit)


def _find_fault(*, migrating: bool = False) -> str:
    (oldest,) = connection.features.minimum_database_version or (0,)
    with _connected() as first:
        if first.info.server_version < oldest * 10_000:
            found = first.info.parameter_status("server_version")
            return f"Holdpoint needs PostgreSQL {oldest} or later; DATABASE_URL leads to {found}."
        if not migrating and xid_offset.stored_ahead(first):
            return str(RestoredDatabase())
    return POOLED if _shares_sessions() else ""


def _shares_sessions() -> bool:
    """Tell whether a pooler in transaction mode is between this process and the server. Raises OperationalError."""
    key = [secrets.randbits(31), secrets.randbits(31)]
    with _connected() as first:
        [(pid,)] = first.execute("SELECT pg_backend_pid()").fetchall()
        if pid == first.info.backend_pid:  # the pid that the server gave on connecting: there is no pooler between
            return False
        first.execute(_TAKE, key)
        if not _count(first, f"{_MINE} AND pid = pg_backend_pid()", key):
            return True
    until = time.monotonic() + ENDED_WITHIN
    with _connected() as second:
        while _count(second, _MINE, key):
            if time.monotonic() > until:
                return True
            time.sleep(0.02)
    return False


def _connected() -> Raw:
    """Connect without preparing anything.

    In a shared session a prepared statement of that name may belong to another client.
    """
    return psycopg.connect(**connection.get_connection_params() | {"autocommit": True, "prepare_threshold": None})


def _count(raw: Raw, sql: str, key: list[int]) -> int:
    [(count,)] = raw.execute(sql, key).fetchall()
    return int(count)
