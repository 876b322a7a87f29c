"""The program elsewhere that works on a run: when it was last heard, and whether it said that it goes away."""

from __future__ import annotations

from datetime import timedelta
from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from checkpoints.models import Run

HEARD = timedelta(seconds=5)  # how exactly it is kept when it was last heard: it may call a hundred times a second


class ClientQuerySet(models.QuerySet["Client"]):
    """Questions about many clients."""

    def heard(self, run_id: int) -> int:
        """Note that the run's program was heard now; how many rows that changed."""
        return self.filter(run_id=run_id).filter(Q(heard_at__lt=Now() - HEARD)).update(heard_at=Now())

    def missed(self) -> ClientQuerySet:
        """Those that were not heard of lately; few, since those of runs that ended go."""
        return self.filter(missed_at__isnull=False, deferred=False)


class Client(models.Model):
    """One a run. Beside it, not in it: whether a program is there is nobody's authority over anything."""

    run = models.OneToOneField(Run, primary_key=True, on_delete=models.CASCADE, related_name="client")
    token = models.ForeignKey("agents.Token", null=True, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120, default="", blank=True)  # what it calls itself: host and process
    lease = models.FloatField(default=60.0)  # seconds that it asked for
    heard_at = models.DateTimeField(db_default=Now())
    missed_at = models.DateTimeField(null=True)  # since when it is known that nothing is heard of it
    deferred = models.BooleanField(default=False, db_default=False)  # it said that it comes back

    objects = ClientQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index("heard_at", name="client_heard", condition=Q(deferred=False, missed_at=None)),
            models.Index("missed_at", name="client_missed", condition=Q(missed_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"client of run {self.run_id}"

    @classmethod
    def came(cls, run: Run, **columns: object) -> Self:
        """Note who works on the run from now on."""
        made, _ = cls.objects.update_or_create(run=run, defaults={"heard_at": Now(), "missed_at": None, **columns})
        return made
