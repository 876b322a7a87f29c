"""What a decision reads before it is taken: the gate, what stands, its policy, its run and the clock, at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Now

from .models import Decision, Gate, Policy, Proposal


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A gate as one statement saw it."""

    gate: Gate  # with its run, plan, policy, team and reviewers
    standing: Proposal
    now: datetime  # the database's clock
    said_before: bool  # whether this person used this key at this gate


def read(gate_id: int, *, user_id: int | None = None, key: str = "") -> Reading:
    """Read a gate, and whether this person said something under this key already. One statement."""
    reviewers = Policy.groups.through.objects.filter(policy_id=OuterRef("gate__policy_id")).order_by("group__name")
    said = Decision.objects.filter(gate=OuterRef("gate_id"), user=user_id, key=key)
    standing = (
        Proposal.objects.select_related("by", "gate__run__plan", "gate__policy__team")
        .annotate(now=Now(), said_before=Exists(said), reviewers=ArraySubquery(reviewers.values("group_id")))
        .get(gate=gate_id, number=F("gate__proposal"))
    )
    gate = standing.gate
    gate.policy.reviewer_ids = standing.reviewers or [gate.policy.team_id]
    return Reading(gate=gate, standing=standing, now=standing.now, said_before=standing.said_before)
