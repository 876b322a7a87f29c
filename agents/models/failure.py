"""A step's exception, kept with its traceback for the run's page."""

from __future__ import annotations

from django.db import models


class Failure(models.Model):
    """One failed attempt of one step."""

    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, related_name="failures", db_index=False)
    base = models.UUIDField()  # the head it started from
    step = models.CharField(max_length=100)
    attempt = models.SmallIntegerField()
    error = models.CharField(max_length=300)  # "ValueError: …", cut
    traceback = models.BinaryField(default=b"")  # UTF-8
    validator = models.CharField(max_length=100, default="", db_default="", blank=True)  # that refused the result
    ring = models.SmallIntegerField(default=0, db_default=0)  # how far back the refusal was taken
    seq = models.IntegerField(default=0, db_default=0)  # the run's newest checkpoint then
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["run", "-id"], name="failure_of_run")]

    def __str__(self) -> str:
        return f"{self.step} of run {self.run_id}: {self.error}"

    @property
    def told(self) -> str:
        """Return the traceback as text (untrusted)."""
        return bytes(self.traceback).decode(errors="replace")
