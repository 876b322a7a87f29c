"""No migration after the running release stops it or takes from it what it uses."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently, ValidateConstraint
from django.db import connection, models
from django.db.migrations import (
    AddConstraint,
    AddField,
    CreateModel,
    Migration,
    RemoveField,
    RunPython,
    RunSQL,
    SeparateDatabaseAndState,
)
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django_pg_migration_tools.operations import SaferAddIndexConcurrently

from tests.harness.session import ROOT

from . import linting
from .released import RELEASED

SOUND = ROOT / ".pytest_cache" / "sound_migrations"
LATEST = models.Index("at", name="event_by_moment")
POSITIVE = models.CheckConstraint(condition=models.Q(version__gte=0), name="version_is_no_less_than_0")
NULL: models.Field[Any, Any] = models.IntegerField(null=True)
REFERENCE: models.Field[Any, Any] = models.ForeignKey("Event", models.PROTECT, null=True)

SCANNED = "constraint-missing-not-valid"


def faults_since(mark: dict[str, str]) -> dict[str, set[str]]:
    """Return what is wrong with each migration after these, by its name.

    To draw all models before each takes a processor half a minute, so one in which nothing was found is not judged
    again, as long as neither it nor any before it, the rules or what they need are others.
    """
    loader = MigrationLoader(connection)
    known = {parent for last in mark.items() for parent in loader.graph.forwards_plan(last)}
    state, found = ProjectState(real_apps=loader.unmigrated_apps), {}
    sound = set(SOUND.read_text().split()) if SOUND.exists() else set()
    files = hashlib.sha256((ROOT / "requirements-dev.txt").read_bytes() + Path(str(linting.__file__)).read_bytes())
    for migration, _ in MigrationExecutor(connection).migration_plan(loader.graph.leaf_nodes(), clean_start=True):
        key = (migration.app_label, migration.name)
        files.update(Path(str(sys.modules[type(migration).__module__].__file__)).read_bytes())
        if key[0] in {*mark, "later"} and key not in known and files.hexdigest() not in sound:
            if wrong := linting.faults(migration, state.clone(), connection):
                found[".".join(key)] = wrong
            else:
                sound.add(files.hexdigest())
        migration.mutate_state(state, preserve=False)
    SOUND.write_text("\n".join(sound))
    return found


@cache
def newest() -> ProjectState:
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
        (
            [AddField("run", "event", REFERENCE)],
            {"adding-foreign-key-constraint", "require-concurrent-index-creation", "several-tables"},
        ),
        ([AddConstraint("run", POSITIVE)], {SCANNED}),
        ([AddConstraintNotValid("run", POSITIVE)], set()),
        ([AddConstraintNotValid("run", POSITIVE), ValidateConstraint("run", POSITIVE.name)], {SCANNED}),
        ([RemoveField("run", "reason")], {"ban-drop-column"}),
        ([SeparateDatabaseAndState(state_operations=[RemoveField("run", "reason")])], set()),
        ([RunSQL("UPDATE checkpoints_event SET actor_name = ''")], {"data-in-one-go"}),
        ([RunPython(RunPython.noop)], {"unknown-effect"}),
        ([CreateModel("New", [("id", models.BigAutoField(primary_key=True)), ("event", REFERENCE)])], set()),
        ([AddField("run", "more", NULL), AddField("run", "again", NULL)], set()),
        ([AddField("run", "more", NULL), AddField("note", "more", NULL)], {"several-tables"}),
    ],
)  # fmt: skip
def test_what_would_stop_the_running_release_is_named(operations: Sequence[Operation], broken: set[str]) -> None:
    assert judged(operations) == broken


UNKNOWN = (
    "DO $$ BEGIN UPDATE checkpoints_event SET actor_name = ''; END $$",
    "WITH gone AS (DELETE FROM checkpoints_event RETURNING *) SELECT count(*) FROM gone",
    "TRUNCATE checkpoints_note",
    "CREATE TABLE copy (id) AS SELECT id FROM checkpoints_event",
    "CREATE OR REPLACE FUNCTION public.checkpoints_xid_offset() RETURNS bigint LANGUAGE sql RETURN 1",
    "ALTER TABLE checkpoints_run SET UNLOGGED",
)


def test_sql_of_unknown_effect_needs_a_reason() -> None:
    for sql in UNKNOWN:
        assert judged([RunSQL(sql)]) == {"unknown-effect"}, sql
    assert judged([RunSQL([sql])], accepted={"unknown-effect": "nobody uses it yet"}) == set()


def test_two_tables_are_told_apart_however_they_are_named() -> None:
    """Two in one schema passed as one, by the schema's name."""
    add = "ADD COLUMN IF NOT EXISTS more integer"
    for table in ("public.checkpoints_note", "IF EXISTS checkpoints_note", "ONLY checkpoints_note"):
        both = [RunSQL(f"ALTER TABLE {table} {add}"), RunSQL(f'ALTER TABLE "public"."checkpoints_run" {add}')]
        assert "several-tables" in judged(both)
        assert "several-tables" not in judged([both[0], RunSQL(f"ALTER TABLE checkpoints_note {add}")])


def test_what_is_done_outside_of_a_transaction_can_be_done_again() -> None:
    assert judged([AddIndexConcurrently("event", LATEST)], atomic=False) == {"prefer-robust-stmts"}
    assert judged([SaferAddIndexConcurrently("event", LATEST)], atomic=False) == set()


def judged(operations: Sequence[Operation], **more: object) -> set[str]:
    """Return what a migration of these operations would break, done to the newest tables."""
    made = type("Migration", (Migration,), {"operations": list(operations), **more})("made_up", "checkpoints")
    return linting.faults(made, newest().clone(), connection)
