"""Escalations that a gate's policy plans: when, and to which team."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class EscalationQuerySet(models.QuerySet["Escalation"]):
    """Queries of planned escalations."""

    def due(self) -> EscalationQuerySet:
        """Select those whose time has come, by the database's clock, the longest due first."""
        return self.filter(status=Escalation.Status.PLANNED, due_at__lte=Now()).order_by("due_at")

    def at_deadline(self) -> EscalationQuerySet:
        """Select those that wait for their gates' deadlines, the next level first."""
        return self.filter(status=Escalation.Status.PLANNED, due_at=None).order_by("number")


class Escalation(models.Model):
    """One level of one gate's escalation: its team joins the reviewers. Written by approvals.assignments.escalating."""

    class Status(models.TextChoices):
        # planned -> done | dropped
        PLANNED = "planned", "Planned"
        DONE = "done", "Done"
        DROPPED = "dropped", "Not needed"

    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="escalations", db_index=False)
    number = models.PositiveSmallIntegerField()  # from 1
    team = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+")
    due_at = models.DateTimeField(null=True)  # null: at the gate's deadline
    extend = models.DurationField(null=True)  # of a level at the deadline: for how long it moves that
    status = models.CharField(max_length=7, choices=Status.choices, default=Status.PLANNED)
    planned_at = models.DateTimeField(db_default=Now())

    objects = EscalationQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["gate", "number"], name="escalation_level_is_planned_once")]
        indexes = [models.Index("due_at", name="escalation_due", condition=Q(status="planned", due_at__isnull=False))]

    def __str__(self) -> str:
        return f"level {self.number} of gate {self.gate_id}"
