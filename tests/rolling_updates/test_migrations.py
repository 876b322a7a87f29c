"""No migration after the running release stops it or takes from it what it uses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently, ValidateConstraint
from django.db import connection, models
from django.db.migrations import (
    AddConstraint,
    AddField,
    AddIndex,
    AlterField,
    CreateModel,
    DeleteModel,
    Migration,
    RemoveField,
    RenameField,
    RenameModel,
    RunPython,
    RunSQL,
    SeparateDatabaseAndState,
)
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django_pg_migration_tools.operations import SaferAddIndexConcurrently

from .linting import faults
from .released import RELEASED

LATEST = models.Index("at", name="event_by_moment")
POSITIVE = models.CheckConstraint(condition=models.Q(version__gte=0), name="version_is_no_less_than_0")
NULL: models.Field[Any, Any] = models.IntegerField(null=True)
REFERENCE: models.Field[Any, Any] = models.ForeignKey("Event", models.PROTECT, null=True)
ONCE = models.UniqueConstraint(fields=["team", "title"], name="title_is_given_once")

SCANNED = "constraint-missing-not-valid"


def faults_since(mark: dict[str, str]) -> dict[str, set[str]]:
    """Return what is wrong with each migration after these, by its name."""
    loader = MigrationLoader(connection)
    known = {parent for last in mark.items() for parent in loader.graph.forwards_plan(last)}
    state, found = ProjectState(real_apps=loader.unmigrated_apps), {}
    for migration, _ in MigrationExecutor(connection).migration_plan(loader.graph.leaf_nodes(), clean_start=True):
        key = (migration.app_label, migration.name)
        if key[0] in {*mark, "later"} and key not in known:
            found[".".join(key)] = faults(migration, state.clone(), connection)
        migration.mutate_state(state, preserve=False)
    return {name: wrong for name, wrong in found.items() if wrong}


@cache
def newest() -> ProjectState:
    """The newest tables; a copy takes a fiftieth of the time."""
    state = MigrationLoader(connection).project_state()
    assert state.apps  # is made once
    return state


def test_migrations_let_the_running_release_go_on(settings: Any) -> None:
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.rolling_updates.later"]
    assert faults_since(RELEASED) == {"later.0003_index": {"require-concurrent-index-creation"}}


@pytest.mark.parametrize(
    ("operations", "broken"),
    [
        ([AddField("run", "more", models.IntegerField(default=0))], {"ban-drop-default"}),
        ([AddField("run", "more", models.IntegerField(default=0, db_default=0))], set()),
        ([AddField("run", "more", models.IntegerField(null=True))], set()),
        (
            [AddField("run", "event", REFERENCE)],
            {"adding-foreign-key-constraint", "require-concurrent-index-creation", "several-tables"},
        ),
        ([AddIndex("event", LATEST)], {"require-concurrent-index-creation"}),
        ([AddConstraint("run", POSITIVE)], {SCANNED}),
        ([AddConstraintNotValid("run", POSITIVE)], set()),
        ([ValidateConstraint("run", "version_is_no_less_than_0")], set()),
        ([AddConstraintNotValid("run", POSITIVE), ValidateConstraint("run", POSITIVE.name)], {SCANNED}),
        ([AddConstraint("run", ONCE)], {"disallowed-unique-constraint", SCANNED}),
        ([AlterField("run", "seq", models.BigIntegerField(default=0))], {"changing-column-type"}),
        ([AlterField("run", "head", models.UUIDField())], {"adding-not-nullable-field"}),
        ([RemoveField("run", "reason")], {"ban-drop-column"}),
        ([SeparateDatabaseAndState(state_operations=[RemoveField("run", "reason")])], set()),
        ([RenameField("run", "reason", "why")], {"renaming-column"}),
        ([RenameModel("note", "remark")], {"renaming-table"}),
        ([DeleteModel("note")], {"ban-drop-table"}),
        ([RunSQL("UPDATE checkpoints_event SET actor_name = ''")], {"data-in-one-go"}),
        ([RunPython(RunPython.noop)], {"unknown-effect"}),
        ([CreateModel("New", [("id", models.BigAutoField(primary_key=True)), ("event", REFERENCE)])], set()),
        ([AddField("run", "more", NULL), AddField("run", "again", NULL)], set()),
        ([AddField("run", "more", NULL), AddField("note", "more", NULL)], {"several-tables"}),
    ],
)  # fmt: skip
def test_what_would_stop_the_running_release_is_named(operations: Sequence[Operation], broken: set[str]) -> None:
    assert judged(operations) == broken


@pytest.mark.parametrize(
    "sql",
    [
        "DO $$ BEGIN UPDATE checkpoints_event SET actor_name = ''; END $$",
        "WITH gone AS (DELETE FROM checkpoints_event RETURNING *) SELECT count(*) FROM gone",
        "TRUNCATE checkpoints_note",
        "LOCK TABLE checkpoints_run IN ACCESS EXCLUSIVE MODE",
        "CREATE TABLE copy AS SELECT * FROM checkpoints_event",
        "CREATE TABLE copy (id) AS SELECT id FROM checkpoints_event",
        "VACUUM FULL checkpoints_run",
        "REVOKE INSERT ON checkpoints_event FROM holdpoint_app",
        "CREATE TRIGGER no BEFORE INSERT ON checkpoints_run FOR EACH ROW EXECUTE FUNCTION public.refuse()",
        "CREATE OR REPLACE FUNCTION public.checkpoints_xid_offset() RETURNS bigint LANGUAGE sql RETURN 1",
        "ALTER TABLE checkpoints_run DISABLE TRIGGER ALL",
        "ALTER TABLE checkpoints_run SET UNLOGGED",
    ],
    ids=lambda sql: " ".join(sql.split()[:3]),
)
def test_sql_of_unknown_effect_needs_a_reason(sql: str) -> None:
    assert judged([RunSQL(sql)]) == {"unknown-effect"}
    assert judged([RunSQL([sql])], accepted={"unknown-effect": "nobody uses it yet"}) == set()


@pytest.mark.parametrize("table", ["public.checkpoints_note", "IF EXISTS checkpoints_note", "ONLY checkpoints_note"])
def test_two_tables_are_told_apart_however_they_are_named(table: str) -> None:
    """Two in one schema passed as one, by the schema's name."""
    add = "ADD COLUMN IF NOT EXISTS more integer"
    both = [RunSQL(f"ALTER TABLE {table} {add}"), RunSQL(f'ALTER TABLE "public"."checkpoints_run" {add}')]
    assert "several-tables" in judged(both)
    assert "several-tables" not in judged([both[0], RunSQL(f"ALTER TABLE checkpoints_note {add}")])


@pytest.mark.parametrize(
    ("operation", "broken"),
    [
        (AddIndexConcurrently("event", LATEST), {"prefer-robust-stmts"}),  # a second try finds half of it
        (SaferAddIndexConcurrently("event", LATEST), set()),
    ],
    ids=str,
)
def test_what_is_done_outside_of_a_transaction_can_be_done_again(operation: Operation, broken: set[str]) -> None:
    assert judged([operation], atomic=False) == broken


def test_a_reason_lets_a_migration_pass() -> None:
    reason = {"ban-drop-column": "the release before this one wrote it last"}
    assert judged([RemoveField("run", "reason")], accepted=reason) == set()


def judged(operations: Sequence[Operation], **more: object) -> set[str]:
    """Return what a migration of these operations would break, done to the newest tables."""
    made = type("Migration", (Migration,), {"operations": list(operations), **more})("made_up", "checkpoints")
    return faults(made, newest().clone(), connection)
