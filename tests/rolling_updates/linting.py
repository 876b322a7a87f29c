"""What a migration would do to a release that runs beside it: squawk's rules over the SQL that Django would send.

Two rules are our own, because they are of no single statement: `data-in-one-go` is what changes rows in a migration,
where one transaction holds back every reader of events for as long as it lasts; `unknown-effect` is Python code, which
no reading of SQL can judge. A migration that does such a thing knowingly has an attribute `accepted = {rule: reason}`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import sqlparse
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration, RunPython, SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

SQUAWK = str(Path(sys.executable).parent / "squawk")
IRRELEVANT = (
    "ban-char-field", "prefer-bigint-over-int", "prefer-bigint-over-smallint", "prefer-identity", "prefer-text-field",
    "prefer-timestamptz",  # taste
    "require-lock-timeout", "require-statement-timeout",  # config.migrate sets them
)  # fmt: skip
ROWS = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})


def faults(migration: Migration, before: ProjectState, connection: BaseDatabaseWrapper) -> set[str]:
    """Return the rules that a migration breaks and gives no reason for; `before` is the state that it finds."""
    accepted: Mapping[str, str] = getattr(migration, "accepted", {})
    if any(isinstance(operation, RunPython) for operation in _flat(migration.operations)):
        return {"unknown-effect"} - accepted.keys()
    with connection.schema_editor(collect_sql=True, atomic=migration.atomic) as editor:
        migration.apply(before, editor, collect_sql=True)
    script = "\n".join(["BEGIN;", *editor.collected_sql, "COMMIT;"] if migration.atomic else editor.collected_sql)
    changing = any(each.get_type() in ROWS for each in sqlparse.parse(script))  # type: ignore[no-untyped-call]
    return (set(_squawk(script)) | ({"data-in-one-go"} if changing else set())) - accepted.keys()


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
