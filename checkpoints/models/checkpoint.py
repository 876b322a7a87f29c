"""Checkpoints, the chunks that they share, and the gaps that replace removed ones.

A row holds one step's ops per field, compressed; every 64th is an anchor, a manifest of the whole state
in which long lists are sealed, content-addressed chunks. `digest` covers the header, the state's digest
and the parent's digest, never the encoding; `checksum` covers the encoding, and changes with it.

A gap keeps the headers of what a prune removed in compact form: so the chain of digests can be checked through it as
if nothing were missing, and a run still knows what it did and how often. States, notes and payloads are gone.
"""

from __future__ import annotations

from django.apps import apps
from django.db import models
from django.db.models import Case, OuterRef, Subquery, Sum, Value, When
from django.db.models.functions import Cast, Coalesce, Concat

from checkpoints.values import checkpoint_kinds


class CheckpointQuerySet(models.QuerySet["Checkpoint"]):
    """Queries on checkpoints."""

    def with_names(self) -> CheckpointQuerySet:
        """Annotate each checkpoint with the name that a person gave it as `named`, "" for none."""
        holds = apps.get_model("checkpoints", "Hold")._default_manager.filter(
            run=OuterRef("run"), kind="name", checkpoint=OuterRef("pk"), freed_at__isnull=True
        )
        return self.annotate(named=Coalesce(Subquery(holds.values("reason")[:1]), Value("")))

    def with_noted(self) -> CheckpointQuerySet:
        """Annotate each checkpoint with the count of people's notes on it as `noted`; see checkpoints.runs.notes."""
        subject = Concat(Value("checkpoint:"), Cast(OuterRef("pk"), models.CharField()))
        events = apps.get_model("checkpoints", "Event")._default_manager.sealable().filter(subject=subject)
        case = Case(When(kind="checkpoint.noted", then=1), default=-1)
        kept = events.filter(kind__in=("checkpoint.noted", "checkpoint.note_removed")).order_by().values("subject")
        return self.annotate(noted=Coalesce(Subquery(kept.annotate(sum=Sum(case)).values("sum")), Value(0)))


class Checkpoint(models.Model):
    """An immutable saved state with its position, its parent and its digest."""

    Kind = checkpoint_kinds.Kind

    id = models.UUIDField(primary_key=True)  # may be chosen by the client
    # No database constraint on the hot rows: the guard in the saving statement has just updated the run.
    run = models.ForeignKey(
        "checkpoints.Run", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="checkpoints"
    )
    plan = models.ForeignKey(
        "checkpoints.Plan", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    seq = models.IntegerField()
    parent = models.UUIDField(null=True)
    parent_digest = models.BinaryField(null=True)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    step = models.CharField(max_length=100)
    next_step = models.CharField(max_length=100, default="")  # empty: the run is done
    occurrence = models.IntegerField(default=0)
    attempt = models.SmallIntegerField(default=1)
    token = models.BigIntegerField()
    input_digest = models.BinaryField(null=True)
    code_hash = models.BinaryField(null=True)
    at = models.DateTimeField()
    took_us = models.BigIntegerField(default=0)
    state_digest = models.BinaryField()
    digest = models.BinaryField()
    anchor_seq = models.IntegerField()  # an anchor's own; else its anchor when saved: a prune may add a later one
    codec = models.SmallIntegerField()
    payload = models.BinaryField()
    checksum = models.BinaryField()
    proof = models.BinaryField(null=True)  # of `digest`, by the key of seals; null where none was set

    objects = CheckpointQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="checkpoint_seq_is_taken_once")]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.seq} {self.step}"


class Chunk(models.Model):
    """A large value or a sealed stretch of a list, shared by the checkpoints of one lineage."""

    pk = models.CompositePrimaryKey("lineage", "digest")
    lineage = models.BigIntegerField()
    digest = models.BinaryField()
    codec = models.SmallIntegerField()
    payload = models.BinaryField()
    checksum = models.BinaryField()

    def __str__(self) -> str:
        return f"chunk of lineage {self.lineage}"


class Note(models.Model):
    """A step's own explanation of what it did; stored beside the checkpoint, not in it."""

    run = models.ForeignKey("checkpoints.Run", on_delete=models.DO_NOTHING, db_constraint=False, related_name="notes")
    checkpoint = models.UUIDField(db_index=True)
    text = models.BinaryField()  # UTF-8; an agent may write U+0000, which text columns refuse
    by = models.CharField(max_length=120)
    at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"note on {self.checkpoint}"


class Gap(models.Model):
    """A range of a run's numbers whose checkpoints were removed. The application's role may only insert and select."""

    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, db_index=False, related_name="gaps")
    number = models.IntegerField()  # 1, 2, … within the run: gaps form a chain
    first_seq = models.IntegerField()
    last_seq = models.IntegerField()
    parent_digest = models.BinaryField(null=True)  # of the parent of the first that was removed
    removed = models.BinaryField()  # SHA-256 over the removed checkpoints' digests, in order
    last_digest = models.BinaryField()  # of the last that was removed
    headers = models.BinaryField()  # of what was removed, see checkpoints.store.gaps
    policy = models.CharField(max_length=120)  # "default" or an agent's name, as people read it
    policy_version = models.IntegerField()
    by = models.CharField(max_length=120)
    by_name = models.CharField(max_length=150, default="", blank=True)
    at = models.DateTimeField()
    previous = models.BinaryField(null=True)  # the digest of the gap before it in this run
    digest = models.BinaryField()  # HMAC-SHA-256 where a seal key is set, else SHA-256

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="gaps_form_one_chain_a_run"),
            models.CheckConstraint(
                condition=models.Q(first_seq__gte=1, last_seq__gte=models.F("first_seq")), name="gap_is_a_range"
            ),
        ]

    def __str__(self) -> str:
        return f"gap {self.number} of R-{self.run_id}: {self.first_seq} to {self.last_seq}"
