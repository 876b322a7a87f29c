"""A snooze: a gate that one person put off until later. It stays where it is for everybody else."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class SnoozeQuerySet(models.QuerySet["Snooze"]):
    """Queries of snoozes."""

    def running(self) -> SnoozeQuerySet:
        """Select those that are not over."""
        return self.filter(until__gt=Now())

    def over(self) -> SnoozeQuerySet:
        """Select those that are over, and those of gates that closed."""
        return self.filter(models.Q(until__lte=Now()) | models.Q(gate__closed_at__isnull=False))


class Snooze(models.Model):
    """One gate that one person does not want to see among their own before `until`. Over by itself."""

    # Without a constraint, which would lock a second table while it is made.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="snoozes")
    until = models.DateTimeField()

    objects = SnoozeQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "gate"], name="one_snooze_per_person_and_gate")]

    def __str__(self) -> str:
        return f"gate {self.gate_id} for user {self.user_id} until {self.until}"
