"""Holds: rows that say "this must live", so that pruning needs to ask nobody."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Hold(models.Model):
    """Protects a checkpoint, or a whole run when `checkpoint` is empty, from retention."""

    class Kind(models.TextChoices):
        GATE = "gate", "Open gate"
        FORK = "fork", "Fork"
        NAME = "name", "Name"
        EFFECT = "effect", "Unsettled effect"
        LEGAL = "legal", "Legal hold"

    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, related_name="holds")
    checkpoint = models.UUIDField(null=True)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    subject = models.CharField(max_length=120)  # what holds: "gate:42", "run:7"
    reason = models.CharField(max_length=300)
    by = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)
    freed_at = models.DateTimeField(null=True)
    freed_by = models.CharField(max_length=120, default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "kind", "subject"], condition=Q(freed_at__isnull=True), name="hold_is_made_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} hold on run {self.run_id}"
