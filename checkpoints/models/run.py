"""A run: one execution of an agent, a tree of checkpoints with one head.

Whoever may write a run holds its lease, by the database's clock, and its fencing token; the statement
that writes a checkpoint checks the token. `head`, `token`, `lease_until` and `attempts` carry no index,
so that the update that goes with every checkpoint stays a heap-only one.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q


class Run(models.Model):
    """One execution of an agent."""

    class Status(models.TextChoices):
        # queued -> running; running -> waiting | queued | completed | failed | cancelled;
        # waiting -> queued; queued, waiting -> cancelled
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        WAITING = "waiting", "Waiting"
        COMPLETED = "completed", "Completed"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    LIVE = (Status.QUEUED, Status.RUNNING, Status.WAITING)

    lineage = models.BigIntegerField(null=True)  # the id of the run at the root of the forks
    plan = models.ForeignKey("checkpoints.Plan", on_delete=models.PROTECT, related_name="runs")
    team = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="runs")
    title = models.CharField(max_length=200)
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.QUEUED)
    version = models.IntegerField(default=0)
    head = models.UUIDField(null=True)
    seq = models.IntegerField(default=0)  # of the newest checkpoint, on whatever branch
    next_step = models.CharField(max_length=100, default="")
    token = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    worker = models.CharField(max_length=120, default="", blank=True)
    attempts = models.SmallIntegerField(default=0)  # starts of `next_step` since the head was saved
    wake_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=300, default="", blank=True)  # why it ended, or stands still
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    started_as = models.CharField(max_length=120)  # an actor: "user:7", "agent:refunds", "system"
    key = models.CharField(max_length=200, null=True, unique=True)  # noqa: DJ001 - absent differs from empty
    forked_from = models.UUIDField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index("id", name="run_to_sweep", condition=Q(status__in=["queued", "running"])),
            models.Index("wake_at", name="run_timer", condition=Q(status="waiting", wake_at__isnull=False)),
            models.Index(fields=["team", "-id"], name="run_of_team"),
        ]
        permissions = [
            ("start_run", "May start runs"),
            ("rewind_run", "May rewind, fork, edit and cancel runs"),
        ]

    def __str__(self) -> str:
        return f"R-{self.pk}"
