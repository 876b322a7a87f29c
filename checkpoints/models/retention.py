"""Retention policies, the prunes that remove what no policy keeps, and the holds that protect it.

A policy's row is one version of it: the newest of an agent's is in force, the older rows are its history. A prune is
a dry run first and is applied afterwards; its lines list run by run what to remove, and let a killed prune continue.
A hold protects a checkpoint or a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.core.validators import MinValueValidator
from django.db import models, transaction
from django.db.models import OuterRef, Q, Subquery, Sum
from psycopg.types.numeric import Int8

from checkpoints.actors import Actor
from checkpoints.postgresql.sql import Statement, run_sql

from .run import Run

DEFAULT = "default"  # the name of the policy of all other agents
_FREE = """
UPDATE checkpoints_hold SET freed_at = statement_timestamp(), freed_by = $3
WHERE run_id = $1 AND subject = $2 AND freed_at IS NULL RETURNING id
"""


class RetentionPolicyQuerySet(models.QuerySet["RetentionPolicy"]):
    """Queries on retention policies."""

    def current(self) -> RetentionPolicyQuerySet:
        """Return the newest version of each policy."""
        newest = RetentionPolicy.objects.filter(agent=OuterRef("agent")).order_by("-version").values("pk")[:1]
        return self.filter(pk=Subquery(newest))

    def next_version(self, agent: str) -> int:
        """Return the number that the next version of an agent's policy gets."""
        newest = self.filter(agent=agent).order_by("-version").values_list("version", flat=True).first()
        return (newest or 0) + 1


class RetentionPolicy(models.Model):
    """One version of the policy for one agent's runs, or for those of all agents without one of their own."""

    agent = models.CharField(
        max_length=100,
        default="",
        blank=True,
        help_text="The agent's name. Empty: all agents without a policy of their own.",
    )
    version = models.IntegerField()
    keep_days = models.PositiveIntegerField(
        "keep checkpoints newer than",
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="In days. Empty: no age rule.",
    )
    keep_last = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    keep_gates = models.BooleanField(default=True)
    keep_decisions = models.BooleanField(default=True)
    keep_finals = models.BooleanField(default=True)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = RetentionPolicyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "retention policies"
        constraints = [models.UniqueConstraint(fields=["agent", "version"], name="retention_version_is_written_once")]
        permissions = [("prune_checkpoints", "May remove checkpoints by a retention policy")]

    def __str__(self) -> str:
        return f"{self.called} (version {self.version})"

    @property
    def called(self) -> str:
        """Name the policy as people read it: by its agent, or as the default."""
        return self.agent or DEFAULT

    @property
    def facts(self) -> dict[str, Any]:
        """Return the policy's content, for its event."""
        names = ("keep_days", "keep_last", "keep_gates", "keep_decisions", "keep_finals", "enabled")
        return {"agent": self.agent, **{name: getattr(self, name) for name in names}}


class PruneQuerySet(models.QuerySet["Prune"]):
    """Queries on prunes."""

    def under_way(self) -> PruneQuerySet:
        """Return the prune that is being applied, if any."""
        return self.filter(status=Prune.Status.APPLYING)

    def looking(self) -> PruneQuerySet:
        """Return the prunes whose dry run is not finished."""
        return self.filter(status=Prune.Status.LOOKING)


class Prune(models.Model):
    """A dry run of what the policies would remove, and the removal once it is ordered."""

    class Status(models.TextChoices):
        # looking -> shown | dropped; shown -> applying | dropped; applying -> done | stopped
        LOOKING = "looking", "Looking"
        SHOWN = "shown", "Dry run"
        APPLYING = "applying", "Pruning"
        DONE = "done", "Done"
        STOPPED = "stopped", "Stopped"
        DROPPED = "dropped", "Not applied"

    status = models.CharField(max_length=10, choices=Status.choices, default=Status.LOOKING)
    at = models.DateTimeField()  # the time from which ages count; the database's clock
    by = models.CharField(max_length=120)
    by_name = models.CharField(max_length=150, default="", blank=True)
    nightly = models.BooleanField(default=False, db_default=False)  # applied as soon as the dry run is complete
    policies = models.JSONField(default=dict)  # agent -> the policy row's id, as they were at the dry run
    cursor = models.BigIntegerField(default=0)  # the last run examined
    upto = models.BigIntegerField(default=0)  # the newest run at the start
    runs = models.IntegerField(default=0)  # examined
    checkpoints = models.BigIntegerField(default=0)  # to remove
    size = models.BigIntegerField(default=0)  # bytes of their rows
    removed = models.BigIntegerField(default=0)  # so far
    freed = models.BigIntegerField(default=0)  # bytes so far, chunks included
    digest = models.BinaryField(default=b"")  # over what was shown
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = PruneQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["status"], condition=Q(status="applying"), name="one_prune_at_a_time")
        ]

    def __str__(self) -> str:
        return f"prune {self.pk}"

    @property
    def kept_after_all(self) -> int:
        """Count the checkpoints that the dry run listed but that were not removed."""
        return self.checkpoints - self.removed

    @property
    def signals_and_waits(self) -> Mapping[str, int]:
        """Count the signals and waits that go with the checkpoints: those of the dry run, and those that are gone."""
        columns = {"shown": "signals_and_waits", "gone": "signals_and_waits_removed"}
        return self.lines.aggregate(**{name: Sum(column, default=0) for name, column in columns.items()})


class PruneLine(models.Model):
    """A prune's line for one run: what to remove, what only holds keep, and the progress of the removal."""

    prune = models.ForeignKey(Prune, on_delete=models.CASCADE, related_name="lines", db_index=False)
    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, related_name="+")
    agent = models.CharField(max_length=100)
    policy = models.ForeignKey(RetentionPolicy, on_delete=models.PROTECT, related_name="+")
    checkpoints = models.IntegerField(default=0)
    size = models.BigIntegerField(default=0)
    ranges = models.JSONField(default=list)  # [[first, last], …]
    kept = models.JSONField(default=dict)  # reason -> how many stay for it
    held = models.JSONField(default=list)  # [[hold's id, how many stay for it alone], …]
    removed = models.IntegerField(default=0)
    signals_and_waits = models.IntegerField(default=0, db_default=0)  # to remove: nothing left here needs them
    signals_and_waits_removed = models.IntegerField(default=0, db_default=0)  # so far
    freed = models.BigIntegerField(default=0, db_default=0)  # bytes so far, chunks of the lineage included
    stayed = models.JSONField(default=list, db_default=[])  # [[reason, hold's id or null, how many], …]
    done = models.BooleanField(default=False)
    fault = models.CharField(max_length=300, blank=True, default="", db_default="")  # why no more was removed

    class Meta:
        constraints = [models.UniqueConstraint(fields=["prune", "run"], name="prune_has_one_line_a_run")]
        indexes = [models.Index("prune", "run", name="prune_line_to_do", condition=Q(done=False))]

    def __str__(self) -> str:
        return f"R-{self.run_id} in prune {self.prune_id}"


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
