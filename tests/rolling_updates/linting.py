"""What a migration would do to a release that runs beside it: squawk's rules over the SQL that Django would send.

Three rules are our own. `data-in-one-go` is what changes rows in a migration, where one transaction holds back every
reader of events for as long as it lasts. `several-tables` is one transaction that locks more than one table: while it
waits for the second, nobody gets at the first. `unknown-effect` is what squawk has no rules for: Python code, and SQL
of a kind that is not in KNOWN. A migration that does such a thing knowingly has `accepted = {rule: reason}`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import sqlparse
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration, RunPython, SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from sqlparse.sql import Statement
from sqlparse.tokens import DML

SQUAWK = str(Path(sys.executable).parent / "squawk")
IRRELEVANT = (
    "ban-char-field", "prefer-bigint-over-int", "prefer-bigint-over-smallint", "prefer-identity", "prefer-text-field",
    "prefer-timestamptz",  # taste
    "require-lock-timeout", "require-statement-timeout",  # config.migrate sets them
)  # fmt: skip
ROWS = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
KNOWN = re.compile(
    r"(SET (LOCK_TIMEOUT|CONSTRAINTS)|COMMENT ON|CREATE FUNCTION|CREATE (UNIQUE )?INDEX|DROP (INDEX|TABLE)|"
    r"CREATE TABLE \S+ \((?!.*\) AS )|ALTER TABLE \S+ (ADD|ALTER|DROP|RENAME|VALIDATE|RESET|SET \())"
)
TABLE = r'(?:IF (?:NOT )?EXISTS )?(?:ONLY )?(?:"?\w+"?\.)?"?(\w+)'
MADE = re.compile(f"CREATE TABLE {TABLE}")
LOCKED = re.compile(f"(?:ALTER TABLE|DROP TABLE|REFERENCES) {TABLE}")


def faults(migration: Migration, before: ProjectState, connection: BaseDatabaseWrapper) -> set[str]:
    """Return the rules that a migration breaks and gives no reason for; `before` is the state that it finds."""
    accepted: Mapping[str, str] = getattr(migration, "accepted", {})
    if any(isinstance(operation, RunPython) for operation in _flat(migration.operations)):
        return {"unknown-effect"} - accepted.keys()
    with connection.schema_editor(collect_sql=True, atomic=migration.atomic) as editor:
        migration.apply(before, editor, collect_sql=True)
    sql = "\n".join(editor.collected_sql)
    script = f"BEGIN;\n{sql}\nCOMMIT;" if migration.atomic else sql
    return {*_squawk(script), *_of_our_own(sql, migration.atomic)} - accepted.keys()


def _of_our_own(sql: str, atomic: bool) -> Iterator[str]:
    bare = sqlparse.format(sql, strip_comments=True)
    for statement in sqlparse.parse(bare):
        if statement.get_type() in ROWS:  # type: ignore[no-untyped-call]
            yield "data-in-one-go"
        elif not _known(statement):
            yield "unknown-effect"
    if atomic and len(set(LOCKED.findall(_plain(bare))) - set(MADE.findall(_plain(bare)))) > 1:
        yield "several-tables"


def _known(statement: Statement) -> bool:
    """Tell whether it is of a kind that squawk judges, with no query or change of rows within."""
    tokens = statement.flatten()  # type: ignore[no-untyped-call]
    return KNOWN.match(_plain(str(statement))) is not None and not any(each.ttype is DML for each in tokens)


def _plain(sql: str) -> str:
    return " ".join(sql.upper().split())


def _flat(operations: Iterable[Operation]) -> Iterator[Operation]:
    for operation in operations:
        if isinstance(operation, SeparateDatabaseAndState):
            yield from _flat(operation.database_operations)
        else:
            yield operation


def _squawk(script: str) -> Iterator[str]:
    command = [SQUAWK, "--reporter", "json", "--pg-version", "17", "--exclude", ",".join(IRRELEVANT)]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"squawk failed: {done.stderr}")
    yield from (found["rule_name"] for found in json.loads(done.stdout))
