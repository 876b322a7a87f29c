"""Worker processes and the plans that they serve, kept in PostgreSQL: known also while Redis is down."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from checkpoints.postgresql.sql import run_sql

SILENT = timedelta(seconds=20)  # of silence, after which a process counts as gone: four of its beats
STAYS = timedelta(days=90)  # how long the time at which a plan was last served is kept
_BEAT = """
INSERT INTO agents_worker (name, plans, heard_at, stopped) VALUES ($1, $2, statement_timestamp(), false)
ON CONFLICT (name) DO UPDATE SET plans = excluded.plans, heard_at = excluded.heard_at, stopped = false
"""


class WorkerQuerySet(models.QuerySet["Worker"]):
    """Queries and updates of workers."""

    def beat(self, name: str, plans: Sequence[int]) -> None:
        """Record that the process is alive and takes runs of these plans."""
        run_sql(_BEAT, [name[:120], list(plans)])

    def stop(self, name: str) -> None:
        """Record that the process takes no more runs."""
        self.filter(name=name[:120]).update(stopped=True)

    def there(self) -> WorkerQuerySet:
        """Return the workers that were heard of lately and have not stopped."""
        return self.filter(stopped=False, heard_at__gt=Now() - SILENT)

    def outlived(self) -> WorkerQuerySet:
        """Return the workers last heard of more than 90 days ago."""
        return self.filter(heard_at__lt=Now() - STAYS)


class Worker(models.Model):
    """One process that takes runs, by host and process id."""

    name = models.CharField(max_length=120, primary_key=True)
    plans = ArrayField(models.BigIntegerField(), default=list)
    heard_at = models.DateTimeField(db_default=Now())
    stopped = models.BooleanField(default=False, db_default=False)

    objects = WorkerQuerySet.as_manager()

    def __str__(self) -> str:
        return f"worker {self.name}"
