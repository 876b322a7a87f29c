"""Approved gates of whose effects none has begun: the sweeper looks at each in time, and raises those that do not.

Also here: a draw that people still have to see: its gate was shown to them as a sample, and closed without their
decision."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Count
from django.db.models.functions import Now

from approvals.models.gate import Gate
from checkpoints.postgresql.sql import run_sql


class UnrunQuerySet(models.QuerySet["Unrun"]):
    """Queries of approved gates that have not run."""

    def due(self) -> UnrunQuerySet:
        """Select those that the sweeper is to look at now, the longest due first."""
        return self.filter(due_at__lte=Now()).order_by("due_at")

    def late(self) -> UnrunQuerySet:
        """Select those that the sweeper has looked at, or should have by now."""
        return self.filter(models.Q(raised_at__isnull=False) | models.Q(due_at__lte=Now()))

    def raised(self) -> UnrunQuerySet:
        """Select those that people are told of."""
        return self.filter(raised_at__isnull=False)

    def by_team(self) -> list[tuple[str, int]]:
        """Count those that people are told of, for each team that has any."""
        counted = self.raised().values("gate__team__name").annotate(number=Count("pk"))
        return list(counted.values_list("gate__team__name", "number"))

    def visible_to(self, user: Any) -> UnrunQuerySet:
        """Select those that people are told of and that this person may see, the latest first."""
        raised = self.raised()
        seen = Gate.objects.visible_to(user).filter(pk__in=raised.values("gate"))
        return raised.filter(gate__in=seen).order_by("-raised_at")

    def look_again(self, after: timedelta) -> None:
        """Have the sweeper look at these again after a while."""
        self.update(due_at=Now() + after)

    def tell(self, after: timedelta) -> bool:
        """Mark that people are told now, and look again after a while; False where they were told before."""
        return bool(self.filter(raised_at=None).update(raised_at=Now(), due_at=Now() + after))


class Unrun(models.Model):
    """An approved gate of which nothing is known to have begun. Written as it closes, deleted once something ran."""

    gate = models.OneToOneField(Gate, primary_key=True, on_delete=models.CASCADE, related_name="unrun")
    due_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_index=True)  # when to look at it next
    raised_at = models.DateTimeField(null=True)  # since when people are told

    objects = UnrunQuerySet.as_manager()

    class Meta:
        indexes = [models.Index("raised_at", name="unrun_raised", condition=models.Q(raised_at__isnull=False))]

    def __str__(self) -> str:
        return f"{self.gate}, of which nothing has run"


# Two gates that open at once never take the same draw, and neither waits for the other.
_TAKE = """
DELETE FROM approvals_owedsample WHERE gate_id = (
  SELECT gate_id FROM approvals_owedsample
  WHERE team_id = $1 AND policy = $2 AND agent = $3 AND tools IN ($4, '')
  ORDER BY gate_id LIMIT 1 FOR UPDATE SKIP LOCKED
) RETURNING gate_id
"""


class OwedSample(models.Model):
    """A drawn gate that nobody decided. Its agent's next request of the same tools, under its policy's name, follows.

    Otherwise whoever withdraws what was drawn, changes a word of it and asks again would draw again. By tools, since
    with any request for a successor a harmless one would do.
    """

    # Without constraints, which would lock other tables while they are made.
    gate = models.OneToOneField(Gate, primary_key=True, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    team = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False)
    policy = models.CharField(max_length=60)
    agent = models.CharField(max_length=100)
    tools = models.CharField(max_length=32, default="", db_default="")  # their digest; "": written before it was kept

    class Meta:
        indexes = [models.Index(fields=["team", "policy", "agent", "gate"], name="owed_sample_alike")]

    def __str__(self) -> str:
        return f"the sample of gate {self.gate_id}"


def take_owed_sample(*, team: int, policy: str, agent: str, tools: str) -> bool:
    """Take a draw over for a new gate; False where none is owed. Joins the transaction that opens the gate."""
    return bool(run_sql(_TAKE, [team, policy, agent, tools]))
