"""Reads a gate with its proposal, policy and run in few statements: before a decision, and for its page."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from approvals.audit import evidence
from approvals.models import (
    AddedTeam,
    Decision,
    Draft,
    Gate,
    Grant,
    LentPolicy,
    LentTeam,
    Outcome,
    Proposal,
    ReviewingTeam,
    Webhook,
)
from approvals.models.assignments.claim import holders
from approvals.policy import second_look
from checkpoints.access import token_scope
from checkpoints.access.permissions import DECIDE_GATE, VIEW_RUN, PersonKind, held, kind_of, right_in, teams_where
from checkpoints.access.token_scope import EVERYTHING
from checkpoints.models import Run
from checkpoints.postgresql.batch_query import BatchStatement, columns
from checkpoints.postgresql.prepared_rows import prepared

from . import desk
from .desk import GateDesk


@dataclass(frozen=True, kw_only=True)
class GateReading:
    """A gate as one statement read it."""

    gate: Gate  # with its run, plan, policy, team and reviewers
    proposal: Proposal  # the current one
    now: datetime  # the database's clock
    key_used: bool  # whether this person used this key at this gate
    decides: bool | None  # whether this person is asked; None for nobody, or an account that is switched off
    acted: bool = True  # whether the run, or one of its lineage, has begun an effect
    approvals: list[tuple[datetime, bool]] = field(default_factory=list)  # this person's last, for second_look
    lenders: list[int] = field(default_factory=list)  # the people for whom this person may decide, who are away


def read(gate_id: int, *, user_id: int | None = None, key: str = "") -> GateReading:
    """Read a gate, and whether this person may decide it and already used this key here. One statement."""
    found = next(iter(_with_facts(gate_id, user_id, key)), None)
    if found is None:
        raise Proposal.DoesNotExist
    gate = found.gate
    gate.policy.reviewer_ids = found.reviewers
    gate.hooked, gate.added_ids, gate.holder = found.hooked, found.added, found.holder
    return GateReading(
        gate=gate, proposal=found, now=found.now, key_used=found.key_used, acted=found.acted,
        decides=found.decides if found.active else None,
        approvals=list(zip(found.approved_at, found.looked_twice, strict=True)),
        lenders=sorted({*found.lenders, *found.lenders_here}),
    )  # fmt: skip


@prepared
def _with_facts(gate_id: Any, user_id: Any, key: Any) -> QuerySet[Any]:
    reviewers = ReviewingTeam.objects.filter(policy=OuterRef("gate__policy")).order_by("team__name")
    same_key = Decision.objects.filter(gate=OuterRef("gate_id"), user=user_id, key=key)
    hooks = Webhook.objects.enabled().filter(team=OuterRef("gate__team_id"))
    root = Coalesce(OuterRef("gate__run__lineage"), OuterRef("gate__run_id"))
    kin = Q(pk=root) | Q(lineage=root, forked_from__isnull=False)
    acted = Run.objects.filter(kin, effects__isnull=False)
    recent = second_look.recent(user_id)
    teams = held(PersonKind(True, False, EVERYTHING).person(user_id), DECIDE_GATE)
    deciding = ReviewingTeam.objects.filter(policy=OuterRef("gate__policy"), team__in=teams)
    added = AddedTeam.objects.filter(gate=OuterRef("gate_id")).order_by("pk")
    lent = LentPolicy.objects.filter(policy=OuterRef("gate__policy"), delegate=user_id)
    lent_here = LentTeam.objects.filter(added__gate=OuterRef("gate_id"), delegate=user_id)
    return (
        Proposal.objects.select_related("by", "gate__run__plan", "gate__policy__team")
        .annotate(now=Now(), key_used=Exists(same_key), hooked=Exists(hooks))
        .annotate(
            active=Exists(User.objects.filter(pk=user_id, is_active=True)),
            decides=Exists(deciding) | Exists(added.filter(team__in=teams)),
        )
        .annotate(acted=Exists(acted), **evidence.last_move("gate_id"))
        .annotate(reviewers=ArraySubquery(reviewers.values("team")), added=ArraySubquery(added.values("team")))
        .annotate(lenders=ArraySubquery(lent.values("person")), lenders_here=ArraySubquery(lent_here.values("person")))
        .annotate(holder=holders("gate_id"))
        .annotate(approved_at=ArraySubquery(recent.values("created_at")))
        .annotate(looked_twice=ArraySubquery(recent.values("second_look")))
        .filter(gate=gate_id, number=F("gate__proposal"))
    )


_DRAFT = """
SELECT json_build_object('id', id, 'proposal', proposal, 'body', encode(body, 'base64'), 'kept_at', kept_at)
FROM approvals_draft WHERE gate_id = %s AND user_id = %s
"""
# The same people as LookingQuerySet.people.
_LOOKING = """
SELECT json_build_object('id', id, 'username', username, 'first_name', first_name, 'last_name', last_name)
FROM auth_user WHERE id IN (
  SELECT user_id FROM approvals_looking WHERE gate_id = %s AND until > statement_timestamp()) AND id <> %s
ORDER BY first_name, id
"""
_GRANTED = """
SELECT json_build_object('id', granted.id, 'action', granted.action, 'effect', granted.effect)
FROM approvals_grant granted JOIN approvals_outcome outcome ON outcome.id = granted.outcome_id
WHERE outcome.gate_id = %s ORDER BY granted.id
"""
# Two more than the quorum: one of them may have started the run, and one may be the one who asks.
_MEMBERS = f"""
SELECT DISTINCT may.user_id FROM ({{}}) asked CROSS JOIN LATERAL {right_in("asked.team_id", DECIDE_GATE)} may
LIMIT (SELECT quorum + 2 FROM approvals_policy policy JOIN approvals_gate gate ON gate.policy_id = policy.id
  WHERE gate.id = %s)
"""  # noqa: S608 - constants


_MORE_MEMBERS = " UNION SELECT team_id FROM approvals_addedteam WHERE gate_id = %s AND open"  # not translated: SQL


@dataclass(frozen=True, kw_only=True)
class ShownGate:
    """A gate that somebody may see."""

    gate: Gate  # with its run, plan, policy, team, outcome and reviewers
    standing: Proposal
    sees_run: bool  # False for a reviewer of another team, who sees only the gate
    decides: bool | None  # whether the policy asks them; None for an account that is switched off
    draft: Draft | None  # the reader's own
    looking: list[User]  # other people who have it open now, by name
    replaced: list[int]  # the withdrawn gates that it replaces, the newest first, those that the reader may see
    approvals: list[tuple[datetime, bool]]  # the reader's own last ones, for second_look
    deciders: frozenset[int]  # of an open gate: ids of those who may decide now, at most two more than the quorum
    desk: GateDesk = field(default_factory=GateDesk)


def shown(gate_id: int, *, to: User) -> ShownGate | None:
    """Read a gate for its page; None where this person may not see it. Two statements, three for one that ended."""
    found = _standing(gate_id)
    if not found:
        return None
    standing = found[0]
    gate = standing.gate
    beside = _beside(gate_id, to.pk, kind=kind_of(to))
    if not beside["seen"]:
        return None
    if outcome := getattr(gate, "outcome", None):
        outcome.gate = gate
        if outcome.proposal_id == standing.pk:
            outcome.proposal = standing
        granted = Grant.objects.filter(outcome=outcome)
        granted._result_cache = [Grant(outcome=outcome, **each) for each in beside["granted"]]
        decisions = outcome.decisions.select_related("user")
        decisions._result_cache = _counted(outcome.pk)
        outcome._prefetched_objects_cache = {"grants": granted, "decisions": decisions}
    gate.policy.reviewer_ids = beside["reviewers"]
    gate.policy.reviewers = list(map(Group, beside["reviewers"], beside["reviewer_names"]))
    found_desk = GateDesk.of(beside["desk"])
    gate.desk, gate.added_ids = found_desk, [team for team, _ in found_desk.added]
    gate.reviewers = [*gate.policy.reviewers, *(Group(pk=team, name=name) for team, name in found_desk.added)]
    looking = [User(**each) for each in beside["looking"]]
    draft = _draft(gate, to, beside["draft"][0]) if beside["draft"] else None
    decides = bool(beside["decides"]) if to.is_active else None
    return ShownGate(
        gate=gate, standing=standing, sees_run=bool(beside["sees_run"]), decides=decides, draft=draft,
        looking=looking, replaced=beside["replaced"],
        approvals=list(zip(beside["approved_at"], beside["looked_twice"], strict=True)),
        deciders=frozenset(beside["deciders"]), desk=found_desk,
    )  # fmt: skip


@prepared
def _standing(gate: Any) -> QuerySet[Proposal]:
    """Read a gate's current proposal with the gate."""
    joined = Proposal.objects.select_related(
        "by", "gate__run__plan", "gate__policy__team", "gate__team", "gate__outcome"
    )
    return joined.annotate(**evidence.last_move("gate_id")).filter(gate=gate, number=F("gate__proposal"))


@prepared
def _counted(outcome: Any) -> QuerySet[Decision]:
    through = Outcome.decisions.through.objects.filter(outcome=outcome)
    return Decision.objects.select_related("user").filter(pk__in=through.values("decision"))


@prepared
def _beside(pk: Any, user: Any, *, kind: PersonKind) -> BatchStatement:
    """Read what a gate's page needs beside the gate."""
    reader = kind.person(user)
    seen, gate = Gate.objects.visible_to(reader), Gate.objects.filter(pk=pk)
    reviewers = ReviewingTeam.objects.filter(policy__in=gate.values("policy")).order_by("team__name")
    asked = ReviewingTeam.objects.filter(policy__in=gate.open().values("policy"))
    teams, values = asked.values("team_id").query.sql_with_params()
    return columns(
        seen=seen.filter(pk=pk).values("pk"),
        sees_run=gate.filter(team__in=teams_where(reader, VIEW_RUN)).values("pk"),
        decides=_asks(reader, pk).values("pk"),
        replaced=seen.filter(replacements=pk).order_by("-pk").values("pk"),
        reviewers=reviewers.values("team"),
        reviewer_names=reviewers.values("team__name"),
        draft=(_DRAFT, [pk, user]),
        looking=(_LOOKING, [pk, user]),
        approved_at=second_look.recent(user).values("created_at"),
        looked_twice=second_look.recent(user).values("second_look"),
        granted=(_GRANTED, [pk]),
        deciders=(_MEMBERS.format(teams + _MORE_MEMBERS), [*values, pk, pk]),
        desk=desk.column(reader, pk),
    )


def _asks(reader: Any, gate: Any) -> QuerySet[Gate]:
    """Select this gate where it asks this person in their own name; by a token, if in its scope."""
    teams = held(reader, DECIDE_GATE)
    named = ReviewingTeam.objects.filter(policy=OuterRef("policy"), team__in=teams)
    added = AddedTeam.objects.filter(gate=OuterRef("pk"), team__in=teams)
    asking = Gate.objects.filter(Exists(named) | Exists(added), pk=gate)
    return token_scope.of(reader).narrow(asking, team="team_id")


def _draft(gate: Gate, reader: User, row: dict[str, Any]) -> Draft:
    body, kept_at = b64decode(row["body"]), datetime.fromisoformat(row["kept_at"])
    return Draft(pk=row["id"], gate=gate, user=reader, proposal=row["proposal"], body=body, kept_at=kept_at)
