"""A saved view: a named queue with filters and an order, of one person, whom others of a team may read over.

Also here: a snooze: a gate that one person put off until later. It stays where it is for everybody else.

Also here: a bulk decision: one person's one verdict on several gates of one kind, and how far it has come.

The decisions themselves are the gates': each is recorded under a key that follows from the order and the gate, so that
an order that was cut short is read from them, and sent again decides only the rest.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from approvals.models.decision import Decision


class SavedView(models.Model):
    """One named view of the inbox."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=600, default="", blank=True)  # as in the address of the inbox
    # Shared with its people. Without a constraint, which would lock a second table while it is made.
    team = models.ForeignKey(
        Group, null=True, blank=True, on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    opens = models.BooleanField(default=False, db_default=False)  # the inbox opens with it
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="view_name_is_taken_once"),
            models.UniqueConstraint(fields=["user"], condition=Q(opens=True), name="one_view_opens_the_inbox"),
        ]

    def __str__(self) -> str:
        return self.name


class SnoozeQuerySet(models.QuerySet["Snooze"]):
    """Queries of snoozes."""

    def running(self) -> SnoozeQuerySet:
        """Select those that are not over."""
        return self.filter(until__gt=Now())

    def over(self) -> SnoozeQuerySet:
        """Select those that are over, and those of gates that closed."""
        return self.filter(models.Q(until__lte=Now()) | models.Q(gate__closed_at__isnull=False))


class Snooze(models.Model):
    """One gate that one person does not want to see among their own before `until`. Over by itself."""

    # Without a constraint, which would lock a second table while it is made.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="snoozes")
    until = models.DateTimeField()

    objects = SnoozeQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "gate"], name="one_snooze_per_person_and_gate")]

    def __str__(self) -> str:
        return f"gate {self.gate_id} for user {self.user_id} until {self.until}"


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
