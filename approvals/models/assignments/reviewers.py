"""The teams that were added to one gate's reviewers, and the person or team that is asked to act."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class AddedTeam(models.Model):
    """A team that was added to one gate's reviewers, by an escalation or a person. It stays one of them."""

    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="added", db_index=False)
    team = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="+")
    level = models.PositiveSmallIntegerField(null=True)  # of the escalation; null: a person added it
    by = models.CharField(max_length=120)
    at = models.DateTimeField(db_default=Now())
    open = models.BooleanField(default=True, db_default=True)  # as the gate is, so that queues find the few open ones

    class Meta:
        constraints = [models.UniqueConstraint(fields=["gate", "team"], name="team_is_added_once")]
        indexes = [models.Index("team", "gate", name="added_open", condition=Q(open=True))]

    def __str__(self) -> str:
        return f"{self.team} at gate {self.gate_id}"


class Assignee(models.Model):
    """The person or team, of those who may decide, that is asked to act. It gives no rights, and takes none."""

    gate = models.OneToOneField("approvals.Gate", on_delete=models.CASCADE, related_name="assignee", primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    team = models.ForeignKey(Group, null=True, on_delete=models.CASCADE, related_name="+")
    by = models.CharField(max_length=120)
    by_name = models.CharField(max_length=150, default="")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(user=None, team__isnull=False) | Q(user__isnull=False, team=None),
                name="assignee_is_a_person_or_a_team",
            )
        ]

    def __str__(self) -> str:
        return f"{self.user or self.team} at gate {self.gate_id}"
