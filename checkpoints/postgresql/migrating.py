"""The `migrate` command for use while the application runs: it retries after a lock timeout or a deadlock."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import migrate
from django.db import OperationalError
from django_pg_migration_tools.management.commands import migrate_with_timeouts
from django_pg_migration_tools.timeouts import DBLockTimeoutError
from psycopg.errors import DeadlockDetected


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
