"""Approved gates of whose effects none has begun: the sweeper looks at each in time, and raises those that do not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Count
from django.db.models.functions import Now

from approvals.models.gate import Gate


class UnrunQuerySet(models.QuerySet["Unrun"]):
    """Queries of approved gates that have not run."""

    def due(self) -> UnrunQuerySet:
        """Select those that the sweeper is to look at now, the longest due first."""
        return self.filter(due_at__lte=Now()).order_by("due_at")

    def late(self) -> UnrunQuerySet:
        """Select those that the sweeper has looked at, or should have by now."""
        return self.filter(models.Q(raised_at__isnull=False) | models.Q(due_at__lte=Now()))

    def raised(self) -> UnrunQuerySet:
        """Select those that people are told of."""
        return self.filter(raised_at__isnull=False)

    def by_team(self) -> list[tuple[str, int]]:
        """Count those that people are told of, for each team that has any."""
        counted = self.raised().values("gate__team__name").annotate(number=Count("pk"))
        return list(counted.values_list("gate__team__name", "number"))

    def visible_to(self, user: Any) -> UnrunQuerySet:
        """Select those that people are told of and that this person may see, the latest first."""
        raised = self.raised()
        seen = Gate.objects.visible_to(user).filter(pk__in=raised.values("gate"))
        return raised.filter(gate__in=seen).order_by("-raised_at")

    def look_again(self, after: timedelta) -> None:
        """Have the sweeper look at these again after a while."""
        self.update(due_at=Now() + after)

    def tell(self, after: timedelta) -> bool:
        """Mark that people are told now, and look again after a while; False where they were told before."""
        return bool(self.filter(raised_at=None).update(raised_at=Now(), due_at=Now() + after))


class Unrun(models.Model):
    """An approved gate of which nothing is known to have begun. Written as it closes, deleted once something ran."""

    gate = models.OneToOneField(Gate, primary_key=True, on_delete=models.CASCADE, related_name="unrun")
    due_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_index=True)  # when to look at it next
    raised_at = models.DateTimeField(null=True)  # since when people are told

    objects = UnrunQuerySet.as_manager()

    class Meta:
        indexes = [models.Index("raised_at", name="unrun_raised", condition=models.Q(raised_at__isnull=False))]

    def __str__(self) -> str:
        return f"{self.gate}, of which nothing has run"
