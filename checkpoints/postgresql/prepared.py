"""Prepared statements for what the ORM reads after every step and at every gate.

Building a queryset's statement takes several times as long as running it, and the server plans it anew each time. Here
both happen once. Rows become the same model instances as a queryset's; annotations and `prefetch_related` are
not for these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field, Lookup, Model, QuerySet
from django.db.models.query import get_related_populators
from django.db.models.sql.compiler import SQLCompiler
from psycopg.types.numeric import Int8

from .batch_query import ParameterPlace, filled
from .sql import run_sql

M = TypeVar("M", bound=Model)
Row = Sequence[Any]


class PreparedQuery(Generic[M]):
    """A queryset that is built once a process: `build` gets a ParameterPlace for each of `places` parameters."""

    def __init__(self, build: Callable[..., QuerySet[M]], *, places: int) -> None:
        self.build, self.places = build, places

    def __call__(self, *values: Any) -> list[M]:
        """Return the instances, read with these values in the places. Integers are sent as bigint."""
        sql, read = self._compiled
        return [read(row) for row in run_sql(sql, [_sent(value) for value in values])]

    @cached_property
    def _compiled(self) -> tuple[str, Callable[[Row], M]]:
        queryset = self.build(*[ParameterPlace(n + 1) for n in range(self.places)])
        compiler = queryset.query.get_compiler(DEFAULT_DB_ALIAS)
        sql, parameters = compiler.as_sql()
        if compiler.annotation_col_map or compiler.get_converters([each[0] for each in compiler.select]):
            raise TypeError(f"Read {queryset.model.__name__} by its queryset: Django computes or converts a column")
        told: Any = compiler.klass_info
        model, fields = told["model"], told["select_fields"]
        columns = slice(fields[0], fields[-1] + 1)
        names = [each[0].target.attname for each in compiler.select[columns]]
        related = get_related_populators(told, compiler.select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]

        def read(row: Row) -> M:
            made: M = model.from_db(DEFAULT_DB_ALIAS, names, row[columns])
            for each in related:
                each.populate(row, made)
            return made

        return filled(sql, parameters), read


@Field.register_lookup
class AnyOf(Lookup):
    """`filter(field__any_of=place)`: the field is one of the list that is given in the place."""

    lookup_name = "any_of"

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        """Return the condition."""
        (left, before), (right, after) = self.process_lhs(compiler, connection), compiler.compile(self.rhs)
        return f"{left} = ANY({right})", (*before, *after)


def _sent(value: Any) -> Any:
    return Int8(value) if type(value) is int else value
