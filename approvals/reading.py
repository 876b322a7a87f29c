"""A gate as one statement reads it, with what stands, its policy and its run: before a decision, and for its page."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, F, Func, JSONField, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import JSONObject, Now

from checkpoints.permissions import teams_where

from .models import Decision, Draft, Gate, Grant, Looking, Policy, Proposal


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


GRANTED = JSONObject(id="pk", action="action", effect="effect")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A gate that somebody may see."""

    gate: Gate  # with its run, plan, policy, team, outcome and reviewers
    standing: Proposal
    sees_run: bool  # a reviewer from elsewhere sees the gate and what it shows, nothing else
    draft: Draft | None  # the reader's own
    looking: list[User]  # who else looks at it now, by name


def shown(gate_id: int, *, to: User) -> Shown | None:
    """Read a gate for its page; None where this person may not see it. One statement."""
    groups = Policy.groups.through.objects.filter(policy_id=OuterRef("gate__policy_id")).order_by("group__name")
    members = teams_where(to, "checkpoints.view_run").filter(pk=OuterRef("gate__team_id"))
    found = Proposal.objects.filter(gate__in=Gate.objects.visible_to(to).filter(pk=gate_id), number=F("gate__proposal"))
    standing = (
        found.select_related("by", "gate__run__plan", "gate__policy__team", "gate__team", "gate__outcome")
        .annotate(
            reviewers=ArraySubquery(groups.values(one=JSONObject(id="group_id", name="group__name"))),
            sees_run=Exists(members),
            draft=Subquery(_draft_of(to), output_field=JSONField()),
            looking=ArraySubquery(_others(to)),
            granted=ArraySubquery(
                Grant.objects.filter(outcome__gate=OuterRef("gate_id")).order_by("pk").values(one=GRANTED)
            ),
        )
        .first()
    )
    if standing is None:
        return None
    gate = standing.gate
    if outcome := getattr(gate, "outcome", None):
        outcome.gate = gate
        if outcome.proposal_id == standing.pk:
            outcome.proposal = standing
        granted = Grant.objects.filter(outcome=outcome)
        granted._result_cache = [Grant(outcome=outcome, **each) for each in standing.granted]
        outcome._prefetched_objects_cache = {"grants": granted}
    reviewers = [Group(pk=each["id"], name=each["name"]) for each in standing.reviewers]
    gate.policy.reviewers = reviewers or [gate.policy.team]
    gate.policy.reviewer_ids = [group.pk for group in gate.policy.reviewers]
    looking = [User(**each) for each in standing.looking]
    draft = _draft(gate, to, standing.draft) if standing.draft else None
    return Shown(gate=gate, standing=standing, sees_run=standing.sees_run, draft=draft, looking=looking)


def _draft_of(reader: User) -> QuerySet[Any, Any]:
    body = Func(F("body"), Value("base64"), function="encode", output_field=TextField())
    columns = JSONObject(id="pk", proposal="proposal", body=body, kept_at="kept_at")
    return Draft.objects.filter(gate=OuterRef("gate_id"), user=reader).values(one=columns)


def _draft(gate: Gate, reader: User, row: dict[str, Any]) -> Draft:
    body, kept_at = b64decode(row["body"]), datetime.fromisoformat(row["kept_at"])
    return Draft(pk=row["id"], gate=gate, user=reader, proposal=row["proposal"], body=body, kept_at=kept_at)


def _others(reader: User) -> QuerySet[Any, Any]:
    """As LookingQuerySet.people has them."""
    here = Looking.objects.filter(gate=OuterRef(OuterRef("gate_id")), until__gt=Now()).values("user")
    columns = JSONObject(id="pk", username="username", first_name="first_name", last_name="last_name")
    others = User.objects.filter(pk__in=here).exclude(pk=reader.pk)
    return others.order_by("first_name", "pk").values(one=columns)
