"""Reads rows of models by a statement that is built once, since Django takes longer to build one than it takes to run.

The queryset is given when a process first needs it, with a `ParameterPlace` for everything that differs between calls.
Only its text and its columns are kept, never a row. A statement that has variants is built once for each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from inspect import Parameter, signature
from typing import Any, Generic, TypeVar, cast, overload

from django.db import connection
from django.db.models import BooleanField, Func, Model, QuerySet
from django.db.models.query import get_related_populators

from .batch_query import BatchStatement, ParameterPlace, fill_parameters, type_numbers
from .sql import run_sql

BEYOND = 2**63
VARIANTS = 1024  # of a statement, kept by a process; it builds any other again
Row = TypeVar("Row", bound=Model)
Result = TypeVar("Result")


class OneOf(Func):
    """A condition: a column has one of a list's values, `OneOf(F("pk"), ParameterPlace(1))`. One statement for all."""

    template, arg_joiner, output_field = "%(expressions)s)", " = ANY(", BooleanField()


class PreparedRows(Generic[Row]):
    """A queryset with `select_related` and annotations, but without `prefetch_related`, that can be run repeatedly."""

    def __init__(self, rows: QuerySet[Row]) -> None:
        compiler: Any = rows.query.clone().get_compiler(using=rows.db)
        self.sql = fill_parameters(*compiler.as_sql())
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

        No rows for a number that no column can hold, as Django has it: an address may contain any number.
        """
        if any(type(value) is int and abs(value) >= BEYOND for value in values):
            return []
        return [self._make_instance(row) for row in run_sql(self.sql, list(map(type_numbers, values)), binary=False)]

    def _make_instance(self, values: tuple[Any, ...]) -> Row:
        row = list(values)
        for at, (functions, expression) in self.converters.items():
            for convert in functions:
                row[at] = convert(row[at], expression, connection)
        made: Row = self.model.from_db(self.using, self.names, row[self.own])
        for populator in self.related:
            populator.populate(row, made)
        for name, at in self.annotations.items():
            setattr(made, name, row[at])
        return made


class Prepared(Generic[Result]):
    """A function that runs a statement, which is built when a process first calls it with these keywords."""

    def __init__(self, build: Callable[..., Any]) -> None:
        self.build = build
        self.statement = lru_cache(VARIANTS)(self._statement)

    def _statement(self, **variant: Any) -> PreparedRows[Any] | BatchStatement:
        """Return the statement of a variant, with a place for each parameter."""
        parameters = [
            parameter
            for parameter in signature(self.build).parameters.values()
            if parameter.kind != Parameter.KEYWORD_ONLY
        ]
        built = self.build(*(ParameterPlace(number) for number, _ in enumerate(parameters, 1)), **variant)
        return PreparedRows(built) if isinstance(built, QuerySet) else built

    def __call__(self, *values: Any, **variant: Any) -> Result:
        """Return what the variant's statement reads with these values in the places."""
        return cast(Result, self.statement(**variant).run(*values))


@overload
def prepared_statement(build: Callable[..., QuerySet[Row]]) -> Prepared[list[Row]]: ...
@overload
def prepared_statement(build: Callable[..., BatchStatement]) -> Prepared[dict[str, list[Any]]]: ...
def prepared_statement(build: Callable[..., Any]) -> Prepared[Any]:
    """Make a function that runs the statement which `build` makes of a place for each positional parameter.

    Keyword-only parameters choose a variant of the statement: only what has few values, and never a person's id.
    """
    return Prepared(build)
