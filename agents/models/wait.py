"""Waits: what a step waits for, so that no worker is held meanwhile.

Also here: signals: named values from outside that a run may wait for.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

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


UNMET = "signal_id IS NULL AND ended_by = ''"


class WaitQuerySet(models.QuerySet["Wait"]):
    """Queries about waits."""

    def unmet(self) -> WaitQuerySet:
        """Return the waits that nothing has ended yet; a timer among them may be due."""
        return self.filter(signal__isnull=True, ended_by="")

    def current(self, run: Run) -> Wait | None:
        """Return what the run waits for now, if it is not a gate's decision, nor the end of a run that it started."""
        if run.status != Run.Status.WAITING or run.head is None:
            return None
        # A timer whose time has passed stays unmet while the step waits for something else.
        timed = self.unmet().filter(due__isnull=run.wake_at is None)
        return timed.filter(run=run, step=run.next_step, head=run.head).order_by("-pk").first()


class Wait(models.Model):
    """One wait of one execution of a step: for a time, or for a signal.

    It belongs to the checkpoint from which the step was sent on (`base`): a rewind makes another one there, and the
    step waits anew.
    """

    class Kind(models.TextChoices):
        TIMER = "timer", "timer"
        SIGNAL = "signal", "signal"

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="waits", db_index=False)
    base = models.UUIDField()
    step = models.CharField(max_length=100)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    name = models.CharField(max_length=100)
    number = models.SmallIntegerField()  # counts the waits of this kind and name in one execution, from 1
    head = models.UUIDField()  # the run's head while it waits
    input_digest = models.BinaryField()  # with the step and the occurrence, the execution that it is part of
    occurrence = models.IntegerField()
    due = models.DateTimeField(null=True)  # when it ends by itself; null: never
    signal = models.ForeignKey(Signal, null=True, on_delete=models.PROTECT, related_name="waits", db_index=False)
    ended_by = models.CharField(max_length=120, default="", blank=True)  # an actor: a person before its time, or SYSTEM
    made_at = models.DateTimeField(auto_now_add=True)

    objects = WaitQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "base", "step", "kind", "name", "number"], name="wait_is_made_once")
        ]
        indexes = [models.Index("run", name="wait_for_signal", condition=Q(signal__isnull=False))]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of run {self.run_id}"

    @property
    def ended(self) -> bool:
        """Tell whether it is kept that it has ended, and how."""
        return bool(self.signal_id or self.ended_by)

    def over(self, now: datetime) -> bool:
        """Tell whether it has ended by `now`, by the database's clock."""
        return self.ended or (self.due is not None and self.due <= now)
