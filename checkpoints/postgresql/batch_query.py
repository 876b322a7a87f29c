"""Several small questions in one statement: what a page asks of unrelated tables costs it one round trip.

A statement is put together once and prepared by every connection, since to write and to plan it takes longer than to
answer it: its parameters stand in its text as constants, but for those that a `ParameterPlace` keeps open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db.models import BigIntegerField, Expression, QuerySet
from psycopg.sql import Literal

from .sql import run_sql

Sql = tuple[str, Sequence[Any]]  # a statement with %s and its parameters


class ParameterPlace(Expression):
    """Stands in a question for a whole number that is given when it is asked: the first, the second, ..."""

    def __init__(self, number: int) -> None:
        super().__init__(output_field=BigIntegerField())
        self.number = number

    def as_sql(self, compiler: object, connection: object) -> Any:
        """Return itself as the parameter, which `columns` writes out."""
        return "%s", [self]


@dataclass(frozen=True, slots=True)
class BatchStatement:
    """A statement that can be run again: it holds the questions, never an answer."""

    sql: str
    asked: tuple[str, ...]  # in the order of its columns
    names: tuple[str, ...]

    def run(self, *values: Any) -> dict[str, list[Any]]:
        """Return the columns, all as of one moment; `values` are for the places."""
        found: dict[str, list[Any]] = {name: [] for name in self.names}
        if self.asked:
            found.update(zip(self.asked, run_sql(self.sql, values)[0], strict=True))
        return found


def columns(**rows: QuerySet[Any, Any] | Sql) -> BatchStatement:
    """Build one statement that reads one column of each of these sets of rows (`values("name")`), in their order."""
    parts: list[str] = []
    asked: list[str] = []
    for name, each in rows.items():
        try:
            sql, parameters = each.query.sql_with_params() if isinstance(each, QuerySet) else each
        except EmptyResultSet:
            continue
        asked.append(name)
        parts.append(f"ARRAY({_filled(sql, parameters)})")
    return BatchStatement(f"SELECT {', '.join(parts)}", tuple(asked), tuple(rows))


def _filled(sql: str, parameters: Sequence[Any]) -> str:
    """Return the statement with its parameters in it."""
    pieces = zip_longest(sql.split("%s"), map(_written, parameters), fillvalue="")
    return "".join(text.replace("%%", "%") + value for text, value in pieces)


def _written(parameter: Any) -> str:
    return f"${parameter.number}" if isinstance(parameter, ParameterPlace) else Literal(parameter).as_string()
