"""A bulk decision: one person's one verdict on several gates of one kind, and how far it has come.

The decisions themselves are the gates': each is recorded under a key that follows from the order and the gate, so that
an order that was cut short is read from them, and sent again decides only the rest.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from approvals.models.decision import Decision


class BulkOrderQuerySet(models.QuerySet["BulkOrder"]):
    """Queries of bulk decisions."""

    def outlived(self, kept: timedelta) -> BulkOrderQuerySet:
        """Select those that were sent longer ago than `kept`."""
        return self.filter(created_at__lt=Now() - kept)


class BulkOrder(models.Model):
    """One person's bulk decision. Never changed but for `moved_at` and `finished_at`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=80)  # of the form: the same key is the same order
    verdict = models.CharField(max_length=8, choices=Decision.Verdict.choices)
    then = models.CharField(max_length=8, default="", blank=True)  # of a rejection
    comment = models.BinaryField()  # UTF-8; recorded with each decision
    request = models.BinaryField()  # digest of all that was sent: a key cannot be used for another order
    created_at = models.DateTimeField(db_default=Now())
    moved_at = models.DateTimeField(db_default=Now())  # when a process last worked on it
    finished_at = models.DateTimeField(null=True)

    objects = BulkOrderQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="bulk_key_is_used_once")]
        indexes = [models.Index("created_at", name="bulk_by_age")]

    def __str__(self) -> str:
        return f"bulk decision {self.pk} of user {self.user_id}"

    @property
    def words(self) -> str:
        """Return the reason, as text."""
        return bytes(self.comment).decode(errors="replace")


class BulkItem(models.Model):
    """One gate of a bulk decision, with the proposal that was on the list."""

    order = models.ForeignKey(BulkOrder, on_delete=models.CASCADE, related_name="items", db_index=False)
    # The number that was sent, of which the sender need not know anything; no reference, so that any may be.
    gate_id = models.BigIntegerField()
    number = models.PositiveSmallIntegerField()  # its place in the list, from 0
    seen = models.BinaryField()  # digest of the proposal that was on the list
    shown = models.TextField(default="", blank=True)  # mark of the impact that was on the list
    code = models.CharField(max_length=40, default="", db_default="", blank=True)  # why it was refused; "": it was not
    said = models.BinaryField(default=b"", db_default=b"")  # UTF-8: the same, for a person

    class Meta:
        constraints = [models.UniqueConstraint(fields=["order", "gate_id"], name="one_bulk_item_per_gate")]

    def __str__(self) -> str:
        return f"gate {self.gate_id} of bulk decision {self.order_id}"

    @property
    def words(self) -> str:
        """Return why it was refused, as text."""
        return bytes(self.said).decode(errors="replace")
