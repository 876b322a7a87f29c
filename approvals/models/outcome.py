"""How a gate ended, and the rights that it gave."""

from __future__ import annotations

from django.db import models


class Outcome(models.Model):
    """How a gate ended, one row, written with the gate's closing and read by the runner."""

    class Kind(models.TextChoices):
        APPROVED = "approved", "Approved"
        EDITED = "edited", "Approved with an edit"
        REJECTED = "rejected", "Rejected"
        ANSWERED = "answered", "Answered"
        EXPIRED = "expired", "Expired: nobody answered in time"
        WITHDRAWN = "withdrawn", "Withdrawn"

    gate = models.OneToOneField("approvals.Gate", on_delete=models.PROTECT, related_name="outcome")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    decisions = models.ManyToManyField("approvals.Decision", related_name="+")  # those that counted
    arguments = models.BinaryField(default=b"{}")  # canonical JSON: action id -> final arguments
    patch = models.BinaryField(default=b"[]")  # canonical JSON: JSON Patch on the gate's state
    then = models.CharField(max_length=8, default="", blank=True)
    back_to = models.CharField(max_length=100, default="", blank=True)
    answer = models.BinaryField(default=b"null")
    feedback = models.BinaryField(default=b"")  # UTF-8, what the agent reads after a rejection
    seen = models.BinaryField()
    to_run = models.BinaryField(null=True)  # digest of what may run; none where nothing may
    bound = models.BinaryField(default=b"{}")  # canonical JSON: effect -> {field: hex digest} that to_run covers
    by = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.kind} of gate {self.gate_id}"


class Grant(models.Model):
    """The right to perform one effect once; the effect's intent row consumes it."""

    outcome = models.ForeignKey(Outcome, on_delete=models.PROTECT, related_name="grants")
    action = models.CharField(max_length=100)
    effect = models.CharField(max_length=100)  # the effect step's name

    class Meta:
        constraints = [models.UniqueConstraint(fields=["outcome", "action", "effect"], name="grant_is_given_once")]

    def __str__(self) -> str:
        return f"{self.effect} by outcome {self.outcome_id}"
