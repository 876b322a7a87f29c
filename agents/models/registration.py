"""Registrations of external agents' plans by team: a team uses only plans that its own programs have registered.

An agent's name is no secret and gives no authority: a token's owner in another team may register any plan under it.
"""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import Group
from django.db import models
from django.db.models.functions import Now

from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.models import Plan
from checkpoints.postgresql.sql import run_sql

_SAY = """
INSERT INTO agents_registration (plan_id, team_id, at) SELECT $1, unnest($2::int[]), statement_timestamp()
ON CONFLICT (plan_id, team_id) DO UPDATE SET at = excluded.at RETURNING team_id, xmax = 0
"""


class RegistrationQuerySet(models.QuerySet["Registration"]):
    """Queries and updates of registrations."""

    def say(self, plan: Plan, *, teams: Collection[int], by: Actor) -> None:
        """Register the plan for its version in these teams; record an event for each team where it is new."""
        data = {"agent": plan.agent, "version": plan.version, "digest": bytes(plan.digest).hex()}
        for team, new in run_sql(_SAY, [plan.pk, sorted(teams)]):
            if new:
                event_log.record("plan.registered", subject=f"plan:{plan.pk}", team_id=team, by=by, data=data)

    def plan_of(self, agent: str, version: str, *, team: Group) -> Plan | None:
        """Return the team's plan for a version, or for its newest if none is named; None where it has none.

        The newest version is the one whose first registration is latest: processes register theirs again at each start.
        """
        known = self.filter(plan__agent=agent, team=team).select_related("plan")
        if not version:
            newest = known.order_by("-pk").first()
            if newest is None:
                return None
            version = newest.plan.version
        said = known.filter(plan__version=version).order_by("-at", "-pk").first()
        return None if said is None else said.plan


class Registration(models.Model):
    """One plan, registered for one team."""

    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="+", db_index=False)
    team = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField(db_default=Now())  # when it was last registered

    objects = RegistrationQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["plan", "team"], name="plan_is_registered_once_a_team")]

    def __str__(self) -> str:
        return f"{self.plan} of {self.team}"
