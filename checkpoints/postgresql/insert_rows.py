"""Inserts rows of one model by one prepared statement, whatever their number.

Django writes an insert out anew each time, with the values in its text, and PostgreSQL parses and plans that text each
time. Here each column is an array, so that the same statement serves two rows and a hundred. One row has a statement
of its own, of plain values: making and reading arrays of one takes longer than the insert.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Model
from django.db.models.expressions import DatabaseDefault
from psycopg.types.numeric import Int2, Int4, Int8

from .sql import Statement, run_sql

Pack = Callable[[Any], Any]
# An array of numbers has the type of its largest, and each type would be another statement.
_SIZED: dict[str, Pack] = {"bigint": Int8, "integer": Int4, "smallint": Int2}


def insert_rows(rows: Sequence[Model]) -> None:
    """Insert rows of one model in this order; set the ids and defaults that the database gives them.

    All rows leave the same columns to the database: those of the first. In the caller's transaction.
    """
    if not rows:
        return
    sql, params, given = _insertion(rows)
    for row, values in zip(rows, run_sql(sql, params), strict=True):
        for name, value in zip(given, values, strict=False):  # "1" where none is left to the database
            setattr(row, name, value)


def build_insertion(rows: Sequence[Model]) -> list[Statement]:
    """Return the statement that inserts these rows, for `extras`, none for no rows; ids not given stay unknown."""
    return [_insertion(rows)[:2]] if rows else []


def next_ids(many: int, *models: type[Model]) -> list[tuple[int, ...]]:
    """Take so many new ids of each model, so that one statement can insert rows and the event that names them."""
    return run_sql(_next_ids(models), [many])


@cache
def _next_ids(models: Sequence[type[Model]]) -> str:
    tables = (f"pg_get_serial_sequence('{model._meta.db_table}', '{model._meta.pk.column}')" for model in models)
    return f"SELECT {', '.join(f'nextval({table})' for table in tables)} FROM generate_series(1, $1::int)"  # noqa: S608


def _insertion(rows: Sequence[Model]) -> tuple[str, list[Any], list[str]]:
    """Return the statement, its parameters, and the names of what it returns."""
    model = type(rows[0])
    left = {field.attname for field in model._meta.concrete_fields if _is_left(rows[0], field)}
    names = tuple(field.attname for field in model._meta.concrete_fields if field.attname not in left)
    many = len(rows) > 1
    sql, columns, given = _statement(model, names, many)
    params = [[pack(field.pre_save(row, True)) for row in rows] for field, pack in columns]
    for row in rows:
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
    return sql, params if many else [value for (value,) in params], given


def _is_left(row: Model, field: Any) -> bool:
    """Tell whether the database gives the column its value."""
    value = getattr(row, field.attname)
    return isinstance(value, DatabaseDefault) or (value is None and field.db_returning and field.primary_key)


@cache
def _statement(model: type[Model], names: Sequence[str], many: bool) -> tuple[str, list[tuple[Any, Pack]], list[str]]:
    """Return the statement that inserts these columns, how each is packed, and the names of what it returns."""
    fields: list[Any] = [field for field in model._meta.concrete_fields if field.attname in names]
    given = [field for field in model._meta.concrete_fields if field.attname not in names]
    types = [str(field.db_type(connection)) for field in fields]
    places = [f"${number}::{_element(kind)}" for number, kind in enumerate(types, 1)]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    sent = [f'given."{field.column}"' for field in fields] if many else places
    values = ", ".join(map(_value, sent, types))
    arrays = ", ".join(f"{place}[]" for place in places)
    rows = f"FROM unnest({arrays}) WITH ORDINALITY AS given ({columns}, place) ORDER BY given.place" if many else ""
    returned = ", ".join(f'"{field.column}"' for field in given) or "1"
    sql = f"""
INSERT INTO "{model._meta.db_table}" ({columns}) SELECT {values} {rows} RETURNING {returned}
"""
    packs = [partial(json.dumps, default=str) if kind.endswith("[]") else _sized(kind) for kind in types]
    return sql, list(zip(fields, packs, strict=True)), [field.attname for field in given]


def _element(kind: str) -> str:
    """Return the type of a column's values as they are sent: a cast to varchar(9) would cut what is too long."""
    return "jsonb" if kind.endswith("[]") else _uncut(kind)


def _uncut(kind: str) -> str:
    return kind.partition("(")[0].replace("varchar", "text")


def _value(sent: str, kind: str) -> str:
    """Return a column's value: unnest would take an array of arrays apart, so those are sent as JSON."""
    if not kind.endswith("[]"):
        return sent
    return f"ARRAY(SELECT jsonb_array_elements_text({sent}))::{_uncut(kind.removesuffix('[]'))}[]"


def _sized(kind: str) -> Pack:
    sized = _SIZED.get(kind)
    return (lambda value: value) if sized is None else (lambda value: None if value is None else sized(value))
