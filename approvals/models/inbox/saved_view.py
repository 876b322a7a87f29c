"""A saved view: a named queue with filters and an order, of one person, whom others of a team may read over."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


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
