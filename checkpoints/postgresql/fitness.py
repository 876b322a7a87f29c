"""Whether this PostgreSQL, and the way to it, can be worked with. Asked by each service before it works.

Settings and locks of a session are this process's own only where a connection to the pooler is one to the server. A
pooler that hands out the server's sessions by transaction gives them to whoever comes next, silently, and
may do so by its configuration alone; so it is tried out. A session that takes a lock and ends has
the lock no more, whereas a pooler by transaction goes on with the server's session, and the lock stays.
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

ENDED_WITHIN = 3.0  # seconds in which a pooler has to reset a session that its client has left
POOLED = (
    "DATABASE_URL leads through a pooler that shares sessions by transaction: connect to PostgreSQL directly, or "
    "through a pooler in session mode."
)
_TAKE = "SELECT pg_advisory_lock(%s, %s)"  # keys by chance: where it stays, it is in nobody's way
_MINE = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND (classid, objid) = (%s, %s)"

Raw = psycopg.Connection[Any]


def fault(*, migrating: bool = False) -> str:
    """Return a sentence that says what is unfit, or ""; "" too where nothing answers: `refuse` asks again then.

    A restored database may be migrated, and nothing else until `manage.py restored` was run.
    """
    try:
        return _found(migrating=migrating)
    except psycopg.OperationalError:
        return ""


@cache
def refuse() -> None:
    """Refuse to work with what is unfit. Asks PostgreSQL until it has answered once in this process, and then no more.

    Raises UnfitDatabase and the database's errors.
    """
    with connection.wrap_database_errors:
        if unfit := _found():
            raise UnfitDatabase(unfit)


def _found(*, migrating: bool = False) -> str:
    (oldest,) = connection.features.minimum_database_version or (0,)
    with _connected() as first:
        if first.info.server_version < oldest * 10_000:
            found = first.info.parameter_status("server_version")
            return f"Holdpoint needs PostgreSQL {oldest} or later; DATABASE_URL leads to {found}."
        if not migrating and xid_offset.stored_ahead(first):
            return str(RestoredDatabase())
    return POOLED if _shares_sessions() else ""


def _shares_sessions() -> bool:
    """Tell whether a pooler gives the server's sessions to others by transaction. Raises OperationalError."""
    key = [secrets.randbits(31), secrets.randbits(31)]
    with _connected() as first:
        [(pid,)] = first.execute("SELECT pg_backend_pid()").fetchall()
        if pid == first.info.backend_pid:  # the pid that the server gave at connecting: no pooler is in between
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

    In a shared session a statement of that name may be somebody else's.
    """
    return psycopg.connect(**connection.get_connection_params() | {"autocommit": True, "prepare_threshold": None})


def _count(raw: Raw, sql: str, key: list[int]) -> int:
    [(count,)] = raw.execute(sql, key).fetchall()
    return int(count)
