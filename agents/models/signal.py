"""Signals: named values from outside that a run may wait for."""

from __future__ import annotations

from typing import Any

from django.db import models

from checkpoints.actors import Actor
from checkpoints.models import Run
from checkpoints.values.canonical_json import decode_canonical


class Signal(models.Model):
    """One value that somebody sent to a run. It is kept whether or not the run waits for it yet, and never changes."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="signals", db_index=False)
    name = models.CharField(max_length=100)
    key = models.CharField(max_length=200)  # the sender's own: the same key is one signal
    value = models.BinaryField()  # canonical JSON
    by = models.CharField(max_length=120)  # an actor, and their name
    by_name = models.CharField(max_length=150, default="", blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "name", "key"], name="signal_is_kept_once")]

    def __str__(self) -> str:
        return f"{self.name} to run {self.run_id}"

    @property
    def sender(self) -> Actor:
        """Return who sent it."""
        return Actor(self.by, self.by_name)

    @property
    def content(self) -> Any:
        """Return the value, decoded."""
        return decode_canonical(bytes(self.value))
