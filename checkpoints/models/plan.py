"""Plans: one agent version's steps as data, so that pages and reviewers do not need the agent's code."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Self

from django.db import models

from .run import Run

IMPLIED = re.compile("posted-[0-9a-f]{12}")


def name_plan(agent: str, version: str) -> str:
    """Name the agent, and its version if a person gave it one.

    A posted gate implies a plan whose version is a digest, which is left out.
    """
    return agent if IMPLIED.fullmatch(version) else f"{agent} {version}"


class PlanQuerySet(models.QuerySet["Plan"]):
    """Queries about plans."""

    def of_teams(self, teams: Collection[int]) -> Self:
        """Return the plans that these teams have runs of.

        One run of each plan is looked up in an index, whose order the subquery requests: as a join, or without that
        order, the planner would read every run of the teams.
        """
        runs = Run.objects.filter(plan=models.OuterRef("pk"), team__in=list(teams))
        some = runs.order_by("plan", "team", "-pk").values("pk")[:1]
        return self.alias(some=models.Subquery(some)).filter(some__isnull=False)


class Plan(models.Model):
    """The steps of one agent version. Changed code under the same version is another row; changed titles are not."""

    agent = models.CharField(max_length=100)
    version = models.CharField(max_length=40)
    digest = models.BinaryField()  # SHA-256 over `body`, without titles unless `external`
    body = models.BinaryField()  # canonical JSON, see checkpoints.runs.plans
    external = models.BooleanField(default=False, db_default=False)  # the code is elsewhere: no worker here runs it
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PlanQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "version", "digest", "external"], name="plan_is_stored_once"),
        ]

    def __str__(self) -> str:
        return f"{self.agent} {self.version}"

    @property
    def named(self) -> str:
        """Name the agent and its version for people."""
        return name_plan(self.agent, self.version)
