"""Migrating while the application runs: the `migrate` command, and the format in which new runs are saved.

The command tries again after a lock timeout or a deadlock.

During a rolling update processes of two releases work side by side, and a worker that finds a row in a format it does
not know takes it for damaged and freezes the run. So a new run begins in a format that the release before reads too,
until all its processes are gone and `config.migrate --finish` is told so; a run keeps the format that it began with.
The bits for the codec of its rows (layout.payloads) are a constant in `checkpoints_new_codec()`, which every backup
contains. A database in which no run was started before has the newest at once.
"""

from __future__ import annotations

from typing import Any

from django.core.management.commands import migrate
from django.db import OperationalError, connection
from django_pg_migration_tools.management.commands import migrate_with_timeouts
from django_pg_migration_tools.timeouts import DBLockTimeoutError
from psycopg.errors import DeadlockDetected

NEWEST_CODEC = 4
MAKE_CODEC = "FUNCTION public.checkpoints_new_codec() RETURNS integer LANGUAGE sql STABLE RETURN {}"


class _Try(migrate.Command):
    """One attempt. The library retries only after a lock timeout, so a deadlock is reported to it as one."""

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            super().handle(*args, **options)
        except OperationalError as error:
            if isinstance(error.__cause__, DeadlockDetected):
                raise DBLockTimeoutError from error
            raise


class Command(migrate_with_timeouts.Command, _Try):
    """Migrates, and gives way to transactions that hold locks."""


def use_newest_codec() -> None:
    """Let new runs begin in the newest format; as the owner. Safe to repeat."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE OR REPLACE {MAKE_CODEC.format(NEWEST_CODEC)}")
