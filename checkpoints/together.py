"""Several small questions in one statement: what a page asks of unrelated tables costs it one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

Sql = tuple[str, Sequence[Any]]  # a statement and its parameters


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that can be run again: it holds the questions, never an answer."""

    sql: str
    parameters: tuple[Any, ...]
    asked: tuple[str, ...]  # in the order of its columns
    names: tuple[str, ...]

    def run(self) -> dict[str, list[Any]]:
        """The columns, all as of one moment."""
        found: dict[str, list[Any]] = {name: [] for name in self.names}
        if self.asked:
            with connection.cursor() as cursor:
                cursor.execute(self.sql, self.parameters)
                found.update(zip(self.asked, cursor.fetchone(), strict=True))
        return found


def columns(**rows: QuerySet[Any, Any] | Sql) -> Statement:
    """One column of each of these sets of rows (`values("name")`), in their order."""
    parts: list[str] = []
    asked: list[str] = []
    parameters: list[Any] = []
    for name, each in rows.items():
        try:
            sql, values = each.query.sql_with_params() if isinstance(each, QuerySet) else each
        except EmptyResultSet:
            continue
        asked.append(name)
        parts.append(f"ARRAY({sql})")
        parameters.extend(values)
    return Statement(f"SELECT {', '.join(parts)}", tuple(parameters), tuple(asked), tuple(rows))
