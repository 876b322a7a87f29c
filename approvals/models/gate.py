"""A gate: a stop at which people are asked, and the versions of what they are asked about."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models


class Gate(models.Model):
    """One stop of one run. Opened by the runner, decided by people, read back by the runner."""

    class Status(models.TextChoices):
        # open -> decided | expired | withdrawn
        OPEN = "open", "Open"
        DECIDED = "decided", "Decided"
        EXPIRED = "expired", "Expired"
        WITHDRAWN = "withdrawn", "Withdrawn"

    class Kind(models.TextChoices):
        REVIEW = "review", "Asks for a decision"
        RECOVERY = "recovery", "Asks how to go on after a fault"

    class Risk(models.TextChoices):
        LOW = "low", "Low"
        MEDIUM = "medium", "Medium"
        HIGH = "high", "High"
        CRITICAL = "critical", "Critical"

    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, related_name="gates")
    team = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="gates")
    policy = models.ForeignKey("approvals.Policy", on_delete=models.PROTECT, related_name="gates")
    checkpoint = models.UUIDField()  # the saved state it shows
    step = models.CharField(max_length=100)
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.REVIEW)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.OPEN)
    version = models.IntegerField(default=1)  # raised by everything that happens to the gate
    proposal = models.IntegerField(default=1)  # number of the proposal that stands
    title = models.CharField(max_length=200)
    risk = models.CharField(max_length=8, choices=Risk.choices, default=Risk.MEDIUM)
    card = models.BinaryField()  # canonical JSON, see approvals.cards
    deadline = models.DateTimeField(null=True)
    opened_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "checkpoint"], name="one_gate_per_checkpoint")]
        indexes = [
            models.Index("team", "deadline", name="gate_open", condition=models.Q(status="open")),
            models.Index("deadline", name="gate_overdue", condition=models.Q(status="open", deadline__isnull=False)),
        ]
        permissions = [("decide_gate", "May decide gates")]

    def __str__(self) -> str:
        return f"gate {self.pk}"


class Proposal(models.Model):
    """One version of what a gate asks. An edit makes the next; approvals count for one version only."""

    gate = models.ForeignKey(Gate, on_delete=models.CASCADE, related_name="proposals")
    number = models.IntegerField()
    body = models.BinaryField()  # canonical JSON of everything shown as asked-for
    digest = models.BinaryField()  # SHA-256 over `body`: what a decision binds
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    patch = models.BinaryField(default=b"[]")  # JSON Patch from version 1, on the state
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["gate", "number"], name="proposal_number_is_taken_once")]

    def __str__(self) -> str:
        return f"proposal {self.number} of gate {self.gate_id}"
