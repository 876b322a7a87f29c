"""The kept results of `self.once` and `self.gather`."""

from __future__ import annotations

from django.db import models


class Memo(models.Model):
    """The result of one call in one execution of a step, kept however often that is tried."""

    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, related_name="memos", db_index=False)
    base = models.UUIDField()  # the checkpoint that the step was sent on from; another one after "send back"
    step = models.CharField(max_length=100)
    name = models.CharField(max_length=100)
    digest = models.BinaryField()  # of the arguments and the salt
    result = models.BinaryField()  # canonical JSON
    token = models.BigIntegerField()  # of the worker that called it
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "base", "step", "name", "digest"], name="call_is_kept_once")
        ]

    def __str__(self) -> str:
        return f"{self.name} in {self.step} of run {self.run_id}"
