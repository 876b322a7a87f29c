"""Reads a gate with its proposal, policy and run in one statement, before a decision; and several for messages."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, F, Func, JSONField, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from approvals.audit import evidence
from approvals.models import (
    AddedTeam,
    Decision,
    Draft,
    Gate,
    Policy,
    Proposal,
    ReviewingTeam,
    Webhook,
)
from approvals.models.assignments.claim import holders
from approvals.models.policy import people_named
from approvals.policy import second_look
from approvals.policy.authority import GateStanding
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import prepared_statement


class AccessRows(Func):
    """Rows of `approvals_gate_access` for a gate and a person, as `GateStanding.of` takes them."""

    template = """(SELECT coalesce(jsonb_agg(jsonb_build_array(person_id, team_id)), '[]')
      FROM approvals_gate_access(ARRAY[%(expressions)s::bigint]))"""
    arg_joiner = "::bigint], ARRAY["
    output_field = JSONField()


@dataclass(frozen=True, kw_only=True)
class GateReading:
    """A gate as one statement read it."""

    gate: Gate  # with its run, plan, policy, team and reviewers
    proposal: Proposal  # the current one
    now: datetime  # the database's clock
    key_used: bool  # whether this person used this key at this gate
    drafted: bool  # whether they have a draft here, or at a gate that this one replaces
    stands: GateStanding  # how this person stands to the gate
    acted: bool = True  # whether a run of the lineage has begun an effect, or started another run
    approvals: list[tuple[datetime, bool]] = field(default_factory=list)  # this person's last, for second_look


def read(gate_id: int, *, user_id: int | None = None, key: str = "") -> GateReading:
    """Read a gate, and whether this person may decide it and already used this key here. One statement."""
    found = next(iter(_with_facts(gate_id, user_id, key)), None)
    if found is None:
        raise Proposal.DoesNotExist
    gate = found.gate
    gate.policy.reviewer_ids, gate.policy.person_ids = found.reviewers, found.named
    gate.hooked, gate.added_ids, gate.holder = found.hooked, found.added, found.holder
    return GateReading(
        gate=gate, proposal=found, now=found.now, key_used=found.key_used, drafted=found.drafted, acted=found.acted,
        stands=GateStanding.of(user_id, found.access)
        if found.active and user_id else GateStanding(user_id or 0),
        approvals=list(zip(found.approved_at, found.looked_twice, strict=True)),
    )  # fmt: skip


@prepared_statement
def _with_facts(gate_id: Any, user_id: Any, key: Any) -> QuerySet[Any]:
    reviewers = ReviewingTeam.objects.filter(policy=OuterRef("gate__policy")).order_by("team__name")
    same_key = Decision.objects.filter(gate=OuterRef("gate_id"), user=user_id, key=key)
    drafts = Draft.objects.filter(Q(gate=OuterRef("gate_id")) | Q(gate__replacements=OuterRef("gate_id")), user=user_id)
    hooks = Webhook.objects.enabled().filter(team=OuterRef("gate__team_id"))
    root = Coalesce(OuterRef("gate__run__lineage"), OuterRef("gate__run_id"))
    kin = Q(pk=root) | Q(lineage=root, forked_from__isnull=False)
    acted = Run.objects.filter(kin, Q(effects__isnull=False) | Q(child_rows__isnull=False))
    recent = second_look.recent(user_id)
    named = people_named(OuterRef("gate__policy"))
    added = AddedTeam.objects.filter(gate=OuterRef("gate_id")).order_by("pk")
    return (
        Proposal.objects.select_related("by", "gate__run__plan", "gate__policy__team")
        .annotate(now=Now(), key_used=Exists(same_key), drafted=Exists(drafts), hooked=Exists(hooks))
        .annotate(active=Exists(User.objects.filter(pk=user_id, is_active=True)))
        .annotate(named=ArraySubquery(named), access=AccessRows(F("gate_id"), user_id))
        .annotate(acted=Exists(acted), **evidence.last_move("gate_id"))
        .annotate(reviewers=ArraySubquery(reviewers.values("team")), added=ArraySubquery(added.values("team")))
        .annotate(holder=holders("gate_id"))
        .annotate(approved_at=ArraySubquery(recent.values("created_at")))
        .annotate(looked_twice=ArraySubquery(recent.values("second_look")))
        .filter(gate=gate_id, number=F("gate__proposal"))
    )


def with_reviewers(gates: Collection[int]) -> list[Gate]:
    """Read several gates with their policies' reviewers, runs, plans and teams. Three statements."""
    if not gates:
        return []
    found = list(Gate.objects.filter(pk__in=gates).select_related("policy", "run__plan", "run__started_by", "team"))
    teams: dict[int, list[int]] = {gate.policy_id: [] for gate in found}
    for policy, team in ReviewingTeam.objects.filter(policy__in=teams).values_list("policy_id", "team_id"):
        teams[policy].append(team)
    people: dict[int, list[int]] = {gate.policy_id: [] for gate in found}
    for policy, person in Policy.people.through.objects.filter(policy__in=teams).values_list("policy_id", "user_id"):
        people[policy].append(person)
    for gate in found:
        gate.policy.reviewer_ids, gate.policy.person_ids = teams[gate.policy_id], people[gate.policy_id]
    return found
