"""Holds: rows that protect a checkpoint or a run from retention."""

from __future__ import annotations

from uuid import UUID

from django.db import models, transaction
from django.db.models import Q
from psycopg.types.numeric import Int8

from checkpoints.actors import Actor
from checkpoints.postgresql.sql import Statement, run_sql

from .run import Run

_FREE = """
UPDATE checkpoints_hold SET freed_at = statement_timestamp(), freed_by = $3
WHERE run_id = $1 AND subject = $2 AND freed_at IS NULL RETURNING id
"""


class HoldQuerySet(models.QuerySet["Hold"]):
    """Queries on holds; makes and frees them."""

    def standing(self) -> HoldQuerySet:
        """Return the holds that are not freed yet."""
        return self.filter(freed_at__isnull=True)

    def make(self, *, run: Run, checkpoint: UUID | None, kind: str, subject: str, reason: str, by: Actor) -> Hold:
        """Hold a checkpoint, or a whole run, for `subject`; return the existing hold if there is one.

        Takes the lock of the run's row, which a prune takes too: whichever is second sees what the first did.
        """
        with transaction.atomic():
            list(type(run).objects.select_for_update(no_key=True).filter(pk=run.pk).values_list("pk"))
            hold, _ = self.standing().get_or_create(
                run=run, kind=kind, subject=subject,
                defaults={"checkpoint": checkpoint, "reason": reason[:300], "by": by.id},
            )  # fmt: skip
        return hold

    def free(self, *, run: int, subject: str, by: Actor) -> int:
        """Free what `subject` holds of a run, found by the run's index; return the number of holds freed."""
        return len(run_sql(*self.freeing(run=run, subject=subject, by=by)))

    def freeing(self, *, run: int, subject: str, by: Actor) -> Statement:
        """Return the statement of `free`, for one that runs it beside itself."""
        return _FREE, [Int8(run), subject, by.id]


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
    subject = models.CharField(max_length=120)  # the holder: "gate:42", "run:7"
    reason = models.CharField(max_length=300)
    by = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)
    freed_at = models.DateTimeField(null=True)
    freed_by = models.CharField(max_length=120, default="", blank=True)

    objects = HoldQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "kind", "subject"], condition=Q(freed_at__isnull=True), name="hold_is_made_once"
            )
        ]
        permissions = [("set_legal_hold", "May set and free legal holds")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} on R-{self.run_id}"


class TechnicalHold(Hold):
    """A hold that Holdpoint makes and frees by itself. The administration lists these apart from the legal ones."""

    class Meta:
        proxy = True
