"""The effect ledger: an intent row first, then what came of it."""

from __future__ import annotations

from django.db import models


class Effect(models.Model):
    """One change of the outside world, at most once per key."""

    class Status(models.TextChoices):
        # intended -> done | failed | unknown; unknown -> done | failed | abandoned | intended (same key, retried)
        # failed -> intended (same key, not sent)
        INTENDED = "intended", "Intended"
        DONE = "done", "Done"
        FAILED = "failed", "Failed: provably not done"
        UNKNOWN = "unknown", "Unknown: it may have happened"
        ABANDONED = "abandoned", "Unknown, and done again by order"

    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, related_name="effects")
    step = models.CharField(max_length=100)
    key = models.CharField(max_length=64, unique=True)  # the idempotency key, hex
    grant = models.OneToOneField("approvals.Grant", null=True, on_delete=models.PROTECT, related_name="effect_row")
    base = models.UUIDField()  # the checkpoint it was started from
    input_digest = models.BinaryField()
    occurrence = models.IntegerField(default=0)
    generation = models.IntegerField(default=0)
    attempts = models.IntegerField(default=1)
    token = models.BigIntegerField()  # of the worker that performed it
    irreversible = models.BooleanField(default=False)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.INTENDED)
    result = models.BinaryField(default=b"null")  # canonical JSON: what the step returned
    error = models.CharField(max_length=500, default="", blank=True)
    intended_at = models.DateTimeField(auto_now_add=True)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index("run", "step", name="effect_of_run")]

    def __str__(self) -> str:
        return f"{self.step} of run {self.run_id}: {self.status}"
