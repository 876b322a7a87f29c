"""Rows that somebody with the owner's role changes behind Holdpoint's back; they are put back afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db.models import JSONField, Model
from psycopg import sql
from psycopg.types.json import Jsonb


@contextmanager
def owner() -> Iterator[psycopg.Connection]:
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as made:
        yield made


@contextmanager
def altered(row: Model, **columns: Any) -> Iterator[None]:
    """Give the row these columns, by their names in the database, for as long as the block lasts."""
    before = {name: getattr(row, name) for name in columns}
    with owner() as made:
        _write(made, row, columns)
        try:
            yield
        finally:
            _write(made, row, before)


@contextmanager
def removed(row: Model) -> Iterator[None]:
    """Remove a row to which no other points, for as long as the block lasts."""
    table, key = _names(row)
    with owner() as made:
        made.execute(sql.SQL("CREATE TEMP TABLE kept AS SELECT * FROM {} WHERE {} = %s").format(table, key), [row.pk])
        made.execute(sql.SQL("DELETE FROM {} WHERE {} = %s").format(table, key), [row.pk])
        try:
            yield
        finally:
            made.execute(sql.SQL("INSERT INTO {} OVERRIDING SYSTEM VALUE TABLE kept").format(table))


@contextmanager
def nobody_may() -> Iterator[None]:
    """Empty the view of who may do what in which team, for as long as the block lasts, and leave all tables alone."""
    with owner() as made:
        found = made.execute("SELECT pg_get_viewdef('checkpoints_right'::regclass)").fetchone()
        assert found is not None
        rows = str(found[0]).rstrip(";")
        made.execute(f"CREATE OR REPLACE VIEW checkpoints_right AS SELECT * FROM ({rows}) may WHERE false".encode())
        try:
            yield
        finally:
            made.execute(f"CREATE OR REPLACE VIEW checkpoints_right AS {rows}".encode())


def _write(made: psycopg.Connection, row: Model, columns: dict[str, Any]) -> None:
    table, key = _names(row)
    json = {each.attname for each in row._meta.concrete_fields if isinstance(each, JSONField)}
    values = [Jsonb(value) if name in json else value for name, value in columns.items()]
    said = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in columns)
    made.execute(sql.SQL("UPDATE {} SET {} WHERE {} = %s").format(table, said, key), [*values, row.pk])


def _names(row: Model) -> tuple[sql.Identifier, sql.Identifier]:
    return sql.Identifier(row._meta.db_table), sql.Identifier(str(row._meta.pk.column))
