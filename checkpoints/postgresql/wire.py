"""Runs one statement without psycopg's cursor: for the statement that runs after every step.

A cursor determines each parameter's type every time; for thirty parameters that costs a quarter of the save. Here the
types are known, and values are sent in PostgreSQL's binary form. Only in autocommit mode: psycopg drops prepared
statements after a rollback, which costs a retry here but would abort a transaction. What is dropped is only known when
one is missing; others may have been prepared since, so no name is given twice.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import generators, pq
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.types.numeric import Int2, Int4, Int8

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # PostgreSQL's
_MICROSECOND = timedelta(microseconds=1)
_numbers = itertools.count()
_prepared: WeakKeyDictionary[psycopg.Connection[Any], dict[str, bytes]] = WeakKeyDictionary()

_BINARY = [pq.Format.BINARY]

Value = bytes | None
int2 = struct.Struct("!h").pack
int4 = struct.Struct("!i").pack
int8 = struct.Struct("!q").pack
float8 = struct.Struct("!d").pack


def timestamp(at: datetime) -> bytes:
    """Encode a timestamptz."""
    return int8((at - EPOCH) // _MICROSECOND)


class ColumnType(NamedTuple):
    """A column's type: its name, a value in binary form and back, and as a parameter of this type whatever its size."""

    name: str
    binary: Callable[[Any], bytes]
    value: Callable[[bytes], Any]
    parameter: Callable[[Any], Any] = lambda value: value


def _integer(content: bytes) -> int:
    return int.from_bytes(content, signed=True)


Uuid = Annotated[UUID, ColumnType("uuid", attrgetter("bytes"), lambda content: UUID(bytes=content))]
BigInt = Annotated[int, ColumnType("bigint", int8, _integer, Int8)]
Integer = Annotated[int, ColumnType("int", int4, _integer, Int4)]
SmallInt = Annotated[int, ColumnType("smallint", int2, _integer, Int2)]
Text = Annotated[str, ColumnType("text", str.encode, bytes.decode)]
Bytea = Annotated[bytes, ColumnType("bytea", bytes, bytes)]
Timestamp = Annotated[
    datetime, ColumnType("timestamptz", timestamp, lambda content: EPOCH + _integer(content) * _MICROSECOND)
]


def column_types(row: type[tuple[Any, ...]]) -> dict[str, ColumnType]:
    """Return the type of each column of a row that is declared with the types above, in their order."""
    hints = get_type_hints(row, include_extras=True)
    return {
        name: next(column for part in (hint, *get_args(hint)) for column in getattr(part, "__metadata__", ()))
        for name, hint in hints.items()
    }


def run(sql: str, values: Sequence[Value], *, meanwhile: Callable[[], object]) -> int | None:
    """Run a statement that states its parameters' types itself; return the number of rows.

    `meanwhile` is called while the server works. Returns None, and runs nothing, if Django's connection is in a
    transaction.
    """
    django = connections[DEFAULT_DB_ALIAS]
    if django.in_atomic_block:
        return None
    django.ensure_connection()
    raw: psycopg.Connection[Any] = django.connection
    if not raw.autocommit or raw.pgconn.transaction_status != pq.TransactionStatus.IDLE:
        return None
    with django.wrap_database_errors:
        try:
            return _run(raw, sql, values, meanwhile)
        except InvalidSqlStatementName:
            _prepared.pop(raw, None)
            return _run(raw, sql, values, meanwhile)


def _run(raw: psycopg.Connection[Any], sql: str, values: Sequence[Value], meanwhile: Callable[[], object]) -> int:
    names = _prepared.setdefault(raw, {})
    with raw.lock:
        if sql not in names:
            name = b"holdpoint_%d" % next(_numbers)
            raw.pgconn.send_prepare(name, sql.encode())
            _result(raw)
            names[sql] = name
        raw.pgconn.send_query_prepared(names[sql], values, _BINARY * len(values), pq.Format.BINARY)
        meanwhile()
        count: int = _result(raw).ntuples
        return count


def _result(raw: psycopg.Connection[Any]) -> Any:
    result = raw.wait(generators.execute(raw.pgconn))[-1]
    if result.status == pq.ExecStatus.FATAL_ERROR:
        raise error_from_result(result, raw.info.encoding)
    return result
