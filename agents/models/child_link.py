"""Children: the runs that a run's steps start, and which of its checkpoints count on them."""

from __future__ import annotations

from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from approvals.engine_rules import effects as rules
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql


class ChildLink(models.Model):
    """One run that an execution of a step started, or took over from an earlier execution.

    The execution is known by the checkpoint from which the step was sent on (`base`): after a rewind there is another.
    Rows are written under the lock of the parent run's row, or by a single statement.
    """

    class Order(models.TextChoices):
        # none -> cancel | undo; cancel -> undo
        NONE = "", "none"
        CANCEL = "cancel", "cancel"  # nobody waits for it any more: it ends, and its effects stay
        UNDO = "undo", "undo"  # its parent's run went elsewhere: its effects are undone, and it ends

    run = models.OneToOneField(Run, on_delete=models.PROTECT, related_name="as_child")
    parent = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="child_rows", db_index=False)
    base = models.UUIDField()
    head = models.UUIDField()  # the parent's head then: it differs after a person's answer
    step = models.CharField(max_length=100)
    input_digest = models.BinaryField()  # with the step and the occurrence, the execution that it is part of
    occurrence = models.IntegerField()
    agent = models.CharField(max_length=100)
    digest = models.BinaryField()  # of its agent, version, input and configuration
    number = models.SmallIntegerField()  # counts equal children of one execution, from 1
    held = models.BooleanField(default=False)  # it waits for its turn, since others are at work
    landings = ArrayField(models.UUIDField(), default=list)  # the checkpoints, of the lineage, whose step counts on it
    ordered = models.CharField(max_length=8, choices=Order.choices, default=Order.NONE, blank=True)
    carried_out = models.BooleanField(default=False)  # what is ordered was begun
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["parent", "base", "step", "digest", "number", "head"], name="child_is_started_once"
            )
        ]
        indexes = [
            models.Index("parent", "id", name="child_held", condition=Q(held=True)),  # in the order in which they go
            models.Index("parent", name="child_ordered", condition=~Q(ordered="") & Q(carried_out=False)),
        ]

    def __str__(self) -> str:
        return f"R-{self.run_id} of R-{self.parent_id}"

    @property
    def lost(self) -> bool:
        """Tell whether it has no result, nor will have one that counts. Reads `run`."""
        return rules.lost(self.run.status, self.ordered)

    @property
    def undone(self) -> bool:
        """Tell whether what it did is undone, or is to be: no state counts on it any more."""
        return self.ordered == self.Order.UNDO

    @property
    def tried(self) -> bool:
        """Tell whether it was begun to undo what it did."""
        return self.undone and self.carried_out

    @classmethod
    def landed(cls, ids: list[int], checkpoint: UUID) -> None:
        """Record that the step which counts on these children was saved in this checkpoint."""
        run_sql(_LAND, [ids, checkpoint])


_LAND = "UPDATE agents_childlink SET landings = array_append(landings, $2) WHERE id = ANY($1::bigint[])"
