"""Counts for people, who do not tell 1,412 from 999+: so no page counts a million rows to show one number.

The rows are counted under a limit. Several counts go in one statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

MOST = 999


@dataclass(frozen=True, slots=True)
class Capped:
    """How many there are, up to a bound; reads as `12` or `999+` and is false where there is none."""

    number: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.number}+" if self.more else str(self.number)

    def __bool__(self) -> bool:
        return self.number > 0


def capped(rows: QuerySet[Any], most: int = MOST) -> Capped:
    """Count these rows, at most `most` and one more of them."""
    return capped_each({"rows": rows}, most)["rows"]


def capped_each(rows: Mapping[str, QuerySet[Any]], most: int = MOST) -> dict[str, Capped]:
    """Count several sets of rows as `capped` does, in one statement."""
    parts: list[str] = []
    counted: list[str] = []
    parameters: list[Any] = []
    for name, each in rows.items():
        try:
            sql, values = each.order_by().values("pk")[: most + 1].query.sql_with_params()
        except EmptyResultSet:
            continue
        counted.append(name)
        parts.append(f"(SELECT count(*) FROM ({sql}) counted)")  # noqa: S608 - made by the ORM, values apart
        parameters.extend(values)
    found = dict.fromkeys(rows, 0)
    if parts:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(parts)}", parameters)
            found.update(zip(counted, cursor.fetchone(), strict=True))
    return {name: Capped(min(number, most), number > most) for name, number in found.items()}
