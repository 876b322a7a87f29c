"""`python -m config.migrate` beside a running application: it stops nobody for long, and can be run again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connections

from checkpoints.models import Run
from checkpoints.postgresql import privileges
from config.local.servers import APPLICATION, DATABASE
from tests.harness.services import Service, run
from tests.harness.session import NEWEST, Session
from tests.harness.waiting import until

from .databases import Database, released

RIGHTS = """
SELECT has_table_privilege(%(role)s, 'checkpoints_event', 'UPDATE'),
       has_column_privilege(%(role)s, 'agents_effect', 'status', 'UPDATE')
"""
WAITS = "SELECT 1 FROM pg_locks WHERE relation = 'django_migrations'::regclass AND NOT granted"
OTHERS = """
SELECT 1 FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
MIGRATE = [sys.executable, "-m", "config.migrate"]


@pytest.fixture
def database(servers: Session) -> Iterator[Database]:
    """One that all has been done to but what comes later: each migration would take a processor's time once more."""
    with released(servers, NEWEST) as made:
        yield made


@contextmanager
def somebody_reads(database: Database) -> Iterator[psycopg.Connection]:
    """A transaction that has read runs and stays open, so that nobody can change their table."""
    with database.session(APPLICATION) as reader, reader.transaction():
        reader.execute(f"SELECT count(*) FROM {Run._meta.db_table}")
        yield reader


def test_a_migration_is_refused_waits_or_is_tried_again_beside_a_running_application(
    database: Database, start_service: Callable[..., Service]
) -> None:
    a_table_that_stays_locked_ends_it_in_a_sentence(database)
    the_application_goes_on_while_it_waits_and_another_one_is_refused(database, start_service)
    scenes = (tried_again_after_a_deadlock(database, start_service) for _ in range(5))
    assert any(scenes), "its wait for the lock ended before PostgreSQL found the deadlock, each time"


def a_table_that_stays_locked_ends_it_in_a_sentence(database: Database) -> None:
    with somebody_reads(database):
        refused = run(*MIGRATE, "--retries", "0", env=database.environment, within=300)
    assert refused.returncode == 1
    assert "Not migrated: at each of 1 tries others kept a table locked for more than 2 s, or there" in refused.stderr
    assert "Traceback" not in refused.stderr


def the_application_goes_on_while_it_waits_and_another_one_is_refused(
    database: Database, start_service: Callable[..., Service]
) -> None:
    with somebody_reads(database), database.session(APPLICATION) as page:
        migrating = start_service("migrate", MIGRATE, database.environment)
        migrating.says("A table is locked by others, or there was a deadlock; that was try 1")
        page.execute("SET statement_timeout = '20s'")
        page.execute(f"SELECT count(*) FROM {Run._meta.db_table}")
        second = run(*MIGRATE, env=database.environment, within=300)
        assert (second.returncode, second.stderr) == (
            1, "Not migrated: another process migrates this database now.\n"
        )  # fmt: skip
        assert migrating.alive
    assert migrating.process.wait(300) == 0
    assert "Traceback" not in migrating.log


def tried_again_after_a_deadlock(database: Database, start_service: Callable[..., Service]) -> bool:
    """Have a migration tried again; tell whether that was for a deadlock and not, on a busy machine, a lock timeout.

    It ended with a traceback, while a lock that it could not get was tried again.
    """
    with database.session("postgres") as other:
        other.execute("DELETE FROM django_migrations WHERE app = 'later' AND name > '0002'")
        other.execute(f"ALTER DATABASE {database.name} SET deadlock_timeout = '1s'")
        with other.transaction():
            other.execute("SET LOCAL deadlock_timeout = '5min'")  # the migration is the one that gives way
            other.execute("LOCK TABLE django_migrations IN SHARE MODE")
            migrating = start_service("migrate", MIGRATE, database.environment)
            until(lambda: other.execute(WAITS).fetchone(), what="it has locked effects and waits")
            other.execute("ANALYZE agents_effect")
            migrating.says("that was try 1")
        assert migrating.process.wait(300) == 0, migrating.log
        until(lambda: not other.execute(OTHERS).fetchone(), what="its session has ended, and counted its deadlocks")
        return other.execute(DEADLOCKS).fetchone() == (1,)


def test_the_application_keeps_its_rights_and_gets_no_others_while_they_are_granted_again(servers: Session) -> None:
    migrated = Database(DATABASE, servers)
    seen = set()
    with migrated.session() as other, migrated.alias() as alias:

        def look(execute: Callable[..., object], *call: object) -> object:
            seen.add(other.execute(RIGHTS, {"role": APPLICATION}).fetchone())
            return execute(*call)

        with connections[alias].execute_wrapper(look):
            assert privileges.grant(alias)
    assert seen == {(False, True)}
