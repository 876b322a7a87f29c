"""Reads rows of models by a statement that is built once, since Django takes longer to build one than it takes to run.

The queryset is given when a process first needs it, with a `ParameterPlace` for everything that differs between calls.
Only its text and its columns are kept, never a row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from inspect import signature
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import BooleanField, Func, Model, QuerySet
from django.db.models.query import get_related_populators
from psycopg.types.numeric import Int8

from .batch_query import ParameterPlace, filled
from .sql import run_sql

BEYOND = 2**63
Row = TypeVar("Row", bound=Model)


class OneOf(Func):
    """A condition: a column has one of a list's values, `OneOf(F("pk"), ParameterPlace(1))`. One statement for all."""

    template, arg_joiner, output_field = "%(expressions)s)", " = ANY(", BooleanField()


class PreparedRows(Generic[Row]):
    """A queryset with `select_related` and annotations, but without `prefetch_related`, that can be run repeatedly."""

    def __init__(self, rows: QuerySet[Row]) -> None:
        compiler: Any = rows.query.clone().get_compiler(using=rows.db)
        self.sql = filled(*compiler.as_sql())
        # Where each column belongs, as django.db.models.query.ModelIterable reads it from the compiler.
        fields = compiler.klass_info["select_fields"]
        self.model, self.using = compiler.klass_info["model"], rows.db
        self.own = slice(fields[0], fields[-1] + 1)
        self.names = [column[0].target.attname for column in compiler.select[self.own]]
        self.related = get_related_populators(compiler.klass_info, compiler.select, rows.db)  # type: ignore[call-arg]
        self.annotations = compiler.annotation_col_map or {}
        self.converters = compiler.get_converters([column[0] for column in compiler.select])

    def run(self, *values: Any) -> list[Row]:
        """Run the statement with `values` in its places, as one of Django's own would; return the rows' models.

        None for a number that is beyond every column, as Django has it: an address may name any.
        """
        if any(type(value) is int and abs(value) >= BEYOND for value in values):
            return []
        return [self._made(row) for row in run_sql(self.sql, list(map(_typed, values)), binary=False)]

    def _made(self, found: tuple[Any, ...]) -> Row:
        row = list(found)
        for at, (functions, expression) in self.converters.items():
            for convert in functions:
                row[at] = convert(row[at], expression, connection)
        made: Row = self.model.from_db(self.using, self.names, row[self.own])
        for each in self.related:
            each.populate(row, made)
        for name, at in self.annotations.items():
            setattr(made, name, row[at])
        return made


class Prepared(Generic[Row]):
    """A function that reads the rows of a queryset, which is built when a process first calls it."""

    def __init__(self, build: Callable[..., QuerySet[Row]]) -> None:
        self.build = build

    @cached_property
    def statement(self) -> PreparedRows[Row]:
        """Return the statement, with a place for each parameter."""
        places = [ParameterPlace(number) for number, _ in enumerate(signature(self.build).parameters, 1)]
        return PreparedRows(self.build(*places))

    def __call__(self, *values: Any) -> list[Row]:
        """Return the rows, read with these values in the places."""
        return self.statement.run(*values)


def prepared(build: Callable[..., QuerySet[Row]]) -> Prepared[Row]:
    """Make a function that reads the rows of the queryset which `build` makes of a place for each parameter."""
    return Prepared(build)


def _typed(value: Any) -> Any:
    """Return a number as one of eight bytes whatever its size: a statement is prepared anew for each type."""
    if isinstance(value, list):
        return list(map(_typed, value))
    return Int8(value) if type(value) is int else value
