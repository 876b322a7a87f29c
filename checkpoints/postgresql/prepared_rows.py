"""Reads and inserts rows by statements that are built once: Django takes longer to build one than it takes to run.

A reading statement comes from a queryset when a process first needs it, with a `ParameterPlace` for everything that
differs between calls; all else is a constant in its text. Only its text and its columns are kept, never a row. One
that has variants is built once for each. `select_columns` combines small queries into one statement, so that a page
reads unrelated tables in one round trip.

Django writes an insert out anew each time, with the values in its text, and PostgreSQL parses and plans that text each
time. Here each column is an array, so that the same statement serves two rows and a hundred. One row has a statement
of its own, of plain values: making and reading arrays of one takes longer than the insert.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from inspect import Parameter, signature
from itertools import zip_longest
from typing import Any, Generic, TypeVar, cast, overload

from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import BigIntegerField, BooleanField, Expression, Func, Model, QuerySet
from django.db.models.expressions import DatabaseDefault
from django.db.models.query import get_related_populators
from psycopg.sql import Literal
from psycopg.types.numeric import Int2, Int4, Int8

from .sql import Statement, run_sql

Sql = tuple[str, Sequence[Any]]  # a statement with %s and its parameters
BEYOND = 2**63
VARIANTS = 1024  # of a statement, kept by a process; it builds any other again
Row = TypeVar("Row", bound=Model)
Result = TypeVar("Result")
Pack = Callable[[Any], Any]
# An array of numbers has the type of its largest, and each type would be another statement.
_SIZED: dict[str, Pack] = {"bigint": Int8, "integer": Int4, "smallint": Int2}


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


def insert_rows(rows: Sequence[Model], *, unknown_only: bool = False) -> None:
    """Insert rows of one model in this order; set the ids and defaults that the database gives them.

    All rows leave the same columns to the database: those of the first. In the caller's transaction. `unknown_only`:
    leave out those that a unique constraint refuses; then nothing is set.
    """
    if not rows:
        return
    sql, params, given = _insertion(rows, unknown_only)
    if unknown_only:
        run_sql(sql, params)
        return
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


def _insertion(rows: Sequence[Model], unknown_only: bool = False) -> tuple[str, list[Any], list[str]]:
    """Return the statement, its parameters, and the names of what it returns."""
    model = type(rows[0])
    left = {field.attname for field in model._meta.concrete_fields if _is_left(rows[0], field)}
    names = tuple(field.attname for field in model._meta.concrete_fields if field.attname not in left)
    many = len(rows) > 1
    sql, columns, given = _statement(model, names, many, unknown_only)
    params = [[pack(field.pre_save(row, True)) for row in rows] for field, pack in columns]
    for row in rows:
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
    return sql, params if many else [value for (value,) in params], given


def _is_left(row: Model, field: Any) -> bool:
    """Tell whether the database gives the column its value."""
    value = getattr(row, field.attname)
    return isinstance(value, DatabaseDefault) or (value is None and field.db_returning and field.primary_key)


@cache
def _statement(
    model: type[Model], names: Sequence[str], many: bool, unknown_only: bool
) -> tuple[str, list[tuple[Any, Pack]], list[str]]:
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
    conflict = "ON CONFLICT DO NOTHING" if unknown_only else ""
    sql = f"""
INSERT INTO "{model._meta.db_table}" ({columns}) SELECT {values} {rows} {conflict} RETURNING {returned}
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
