"""Processes as PostgreSQL knows them, also while Redis is down: workers with their plans, the sweeper's last pass."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F
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


class SweeperPass(models.Model):
    """One row: when the sweeper last finished a pass, by the database's clock."""

    at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "sweeper passes"

    def __str__(self) -> str:
        return f"swept at {self.at:%H:%M:%S}"

    @classmethod
    def beat(cls) -> None:
        """Record that a pass was finished."""
        if not cls.objects.filter(pk=1).update(at=Now()):
            SweeperPass.objects.bulk_create([SweeperPass(pk=1)], ignore_conflicts=True)

    @classmethod
    def age(cls) -> float | None:
        """Return the seconds since the last pass, by the database's clock; None before the first."""
        passed = cls.objects.filter(pk=1).annotate(age=Now() - F("at")).values_list("age", flat=True).first()
        return None if passed is None else passed.total_seconds()

    @classmethod
    def latest(cls) -> Self | None:
        """Return the last pass; None before the first."""
        return cls.objects.filter(pk=1).first()
