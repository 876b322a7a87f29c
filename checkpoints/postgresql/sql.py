"""Runs one statement without the ORM.

A statement runs prepared on Django's own connection, so it commits by itself in autocommit mode and joins a
transaction where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def run_sql(sql: str, params: Sequence[Any], *, prepare: bool = True, binary: bool = True) -> list[tuple[Any, ...]]:
    """Run one statement with $1 parameters on Django's connection; return its rows, in binary or text form."""
    django = connections[DEFAULT_DB_ALIAS]  # looked up once: `connection` would be asked for each attribute
    django.ensure_connection()
    django.validate_no_broken_transaction()
    with django.wrap_database_errors, psycopg.RawCursor(cast(Any, django.connection)) as cursor:
        cursor.execute(sql.encode(), params, prepare=prepare, binary=binary)
        result = cursor.pgresult  # only counts its fields: `description` would make an object for each
        return cursor.fetchall() if result is not None and result.nfields else []


def storable(text: str) -> str:
    """Return `text` with U+0000 and lone surrogates, which text columns refuse, replaced."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def microseconds(at: datetime) -> int:
    """Convert a time to microseconds since 1970, exactly."""
    return (at - _EPOCH) // _MICROSECOND
