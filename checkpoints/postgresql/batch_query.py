"""Combines several small queries into one statement, so that a page reads unrelated tables in one round trip.

A statement is built once and prepared by every connection, since building and planning it takes longer than running
it: its parameters are constants in its text, except those that a `ParameterPlace` leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db.models import BigIntegerField, Expression, QuerySet
from psycopg.sql import Literal
from psycopg.types.numeric import Int8

from .sql import run_sql

Sql = tuple[str, Sequence[Any]]  # a statement with %s and its parameters


class ParameterPlace(Expression):
    """A placeholder in a query for a value that is given to `run`: the first, the second, ..."""

    def __init__(self, number: int) -> None:
        super().__init__(output_field=BigIntegerField())
        self.number = number

    def as_sql(self, compiler: object, connection: object) -> Any:
        """Return itself as the parameter, which `select_columns` replaces by its number."""
        return "%s", [self]


@dataclass(frozen=True, slots=True)
class BatchStatement:
    """A statement that can be run repeatedly: it holds the queries, never a result."""

    sql: str
    asked: tuple[str, ...]  # in the order of its columns
    names: tuple[str, ...]

    def run(self, *values: Any) -> dict[str, list[Any]]:
        """Run the queries in one snapshot and return the columns; `values` fill the places."""
        found: dict[str, list[Any]] = {name: [] for name in self.names}
        if self.asked:
            found.update(zip(self.asked, run_sql(self.sql, list(map(type_numbers, values)))[0], strict=True))
        return found


def select_columns(**rows: QuerySet[Any, Any] | Sql) -> BatchStatement:
    """Build one statement that reads one column (`values("name")`) from each of these querysets, in its order."""
    parts: list[str] = []
    asked: list[str] = []
    for name, item in rows.items():
        try:
            sql, parameters = item.query.sql_with_params() if isinstance(item, QuerySet) else item
        except EmptyResultSet:
            continue
        asked.append(name)
        parts.append(f"ARRAY({fill_parameters(sql, parameters)})")
    return BatchStatement(f"SELECT {', '.join(parts)}", tuple(asked), tuple(rows))


def type_numbers(value: Any) -> Any:
    """Return a number, or a list's, as eight bytes whatever its size: a statement is prepared anew for each type."""
    if isinstance(value, list):
        return list(map(type_numbers, value))
    return Int8(value) if type(value) is int else value


def fill_parameters(sql: str, parameters: Sequence[Any]) -> str:
    """Return the statement with its parameters inserted as constants, and its places as numbers."""
    pieces = zip_longest(sql.split("%s"), map(_written, parameters), fillvalue="")
    return "".join(text.replace("%%", "%") + value for text, value in pieces)


def _written(parameter: Any) -> str:
    return f"${parameter.number}" if isinstance(parameter, ParameterPlace) else Literal(parameter).as_string()
