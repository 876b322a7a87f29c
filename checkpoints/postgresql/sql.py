"""Runs one statement without the ORM.

A statement runs prepared on Django's own connection, so it commits by itself in autocommit mode and joins a
transaction where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain
from typing import Any, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PLACE = re.compile(r"\$([0-9]+)")

Statement = tuple[str, Sequence[Any]]  # with $1 parameters, and the parameters


def run_sql(
    sql: str, params: Sequence[Any], *, extras: Sequence[Statement] = (), prepare: bool = True, binary: bool = True
) -> list[tuple[Any, ...]]:
    """Run one statement with $1 parameters on Django's connection; return its rows, in binary or text form.

    `extras`: inserts and updates that are made part of it, which saves their round trips. None of them may read or
    write a row that another of them, or the statement, writes: all see the rows as they were before.
    """
    if extras:
        sql = _joined(sql, len(params), tuple((other, len(given)) for other, given in extras))
        params = [*params, *chain.from_iterable(given for _, given in extras)]
    django = connections[DEFAULT_DB_ALIAS]  # looked up once: `connection` would be asked for each attribute
    django.ensure_connection()
    django.validate_no_broken_transaction()
    with django.wrap_database_errors, psycopg.RawCursor(cast(Any, django.connection)) as cursor:
        cursor.execute(sql.encode(), params, prepare=prepare, binary=binary)
        result = cursor.pgresult  # only counts its fields: `description` would make an object for each
        return cursor.fetchall() if result is not None and result.nfields else []


@cache
def _joined(sql: str, params: int, extras: tuple[tuple[str, int], ...]) -> str:
    """Write the statements `extras`, each with the number of its parameters, as one with `sql`, whose rows it gives."""
    parts = []
    for number, (other, length) in enumerate(extras):
        parts.append(f"beside{number} AS ({shift_parameters(other, by=params)})")
        params += length
    return f"WITH {', '.join(parts)} {sql}"


def shift_parameters(sql: str, *, by: int) -> str:
    """Return a statement with its parameters' numbers raised."""
    return _PLACE.sub(lambda place: f"${int(place[1]) + by}", sql)


def number_parameters(sql: str) -> str:
    """Write the `%s` of a statement that Django's cursor would take as $1, $2 and so on."""
    first, *others = sql.split("%s")
    return "".join([first, *(f"${number}{part}" for number, part in enumerate(others, 1))]).replace("%%", "%")


def make_storable(text: str) -> str:
    """Return `text` with U+0000 and lone surrogates, which text columns refuse, replaced."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def to_microseconds(at: datetime) -> int:
    """Convert a time to microseconds since 1970, exactly."""
    return (at - _EPOCH) // _MICROSECOND
