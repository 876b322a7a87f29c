"""The time of the sweeper's last pass, kept in PostgreSQL, where a flush of Redis cannot lose it."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import F
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy


class SweeperPass(models.Model):
    """One row: when the sweeper last finished a pass, by the database's clock."""

    at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = gettext_lazy("sweeper passes")

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
