"""Reads a gate for its page, with all that the page needs beside it, in two statements."""

from __future__ import annotations

from base64 import b64decode
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import F, QuerySet

from approvals.audit import evidence
from approvals.gates.beside import OpenBeside, statement
from approvals.models import (
    Decision,
    Draft,
    Gate,
    GateVisit,
    Grant,
    Message,
    Outcome,
    Proposal,
    ReviewingTeam,
    Unrun,
)
from approvals.models.draft import OF_GATE_OR_REPLACED
from approvals.policy import second_look
from approvals.policy.authority import GateStanding
from checkpoints.access.permissions import (
    VIEW_RUN,
    PersonKind,
    kind_of,
    teams_where,
)
from checkpoints.postgresql.prepared_rows import BatchStatement, prepared_statement, select_columns

from .desk import DESK, GateDesk, read_desk

# The draft of this gate; else the newest of the withdrawn ones that it replaces, which asked the same.
_DRAFT = f"""
SELECT json_build_object(
  'id', id, 'gate', gate_id, 'proposal', proposal, 'body', encode(body, 'base64'), 'kept_at', kept_at)
FROM approvals_draft WHERE {OF_GATE_OR_REPLACED} AND user_id = %s ORDER BY gate_id DESC LIMIT 1
"""  # noqa: S608 - constants
# What this person saw of the gate, and of those by which the run asked at this step before, the newest first.
_VISITS = """
SELECT json_build_object('gate', visit.gate_id, 'proposal', visit.proposal, 'at', visit.at, 'before', visit.before,
  'before_at', visit.before_at)
FROM approvals_gate shown JOIN approvals_gate seen ON seen.run_id = shown.run_id
JOIN approvals_gatevisit visit ON visit.gate_id = seen.id
WHERE shown.id = %s AND visit.user_id = %s AND (seen.id = shown.id OR seen.id < shown.id AND (
  seen.step = shown.step OR seen.id IN (SELECT to_gate_id FROM approvals_gate_replaces WHERE from_gate_id = shown.id)))
ORDER BY seen.id DESC LIMIT 2
"""
# The same people as LookingQuerySet.people.
_LOOKING = """
SELECT json_build_object('id', id, 'username', username, 'first_name', first_name, 'last_name', last_name)
FROM auth_user WHERE id IN (
  SELECT user_id FROM approvals_looking WHERE gate_id = %s AND until > statement_timestamp()) AND id <> %s
ORDER BY first_name, id
"""
_NAMED = """
SELECT json_build_object('id', id, 'username', username, 'first_name', first_name, 'last_name', last_name)
FROM auth_user WHERE id IN (
  SELECT named.user_id FROM approvals_policy_people named JOIN approvals_gate gate ON gate.policy_id = named.policy_id
  WHERE gate.id = %s)
ORDER BY id
"""
_GRANTED = """
SELECT json_build_object('id', granted.id, 'action', granted.action, 'effect', granted.effect)
FROM approvals_grant granted JOIN approvals_outcome outcome ON outcome.id = granted.outcome_id
WHERE outcome.gate_id = %s ORDER BY granted.id
"""
# What people were told of the gate, for approvals.notifications.log.
_TOLD = """
SELECT told FROM (
  SELECT notice.id, json_build_object(
    'kind', notice.kind, 'channel', notice.channel, 'status', notice.status, 'word', notice.word,
    'at', notice.finished_at, 'opened', notice.opened_at, 'label', coalesce(address.label, ''),
    'user', json_build_object('username', coalesce(person.username, ''), 'first_name', coalesce(person.first_name, ''),
      'last_name', coalesce(person.last_name, ''))) told
  FROM approvals_notice notice LEFT JOIN auth_user person ON person.id = notice.user_id
  LEFT JOIN approvals_channeladdress address ON address.id = notice.address_id AND notice.user_id IS NULL
  WHERE notice.gate_id = %s AND notice.webhook_id IS NULL AND notice.status <> 'dropped'
    AND (notice.kind <> 'reminder' OR notice.status <> 'pending')
  ORDER BY notice.id DESC LIMIT 60) latest ORDER BY id
"""
_ACCESS = """
SELECT json_build_array(person_id, team_id) FROM approvals_gate_access(ARRAY[%s::bigint], ARRAY[%s::bigint])
"""
# Two more than the quorum: one of them may have started the run, and one may be the one who asks. Only for a plain
# policy: see approvals.policy.enough_reviewers for others.
_DECIDERS = """
SELECT DISTINCT user_id
FROM approvals_gate_access((SELECT array_agg(id) FROM approvals_gate WHERE id = %s AND status = 'open'))
WHERE user_id = person_id
LIMIT (SELECT quorum + 2 FROM approvals_policy policy JOIN approvals_gate gate ON gate.policy_id = policy.id
  WHERE gate.id = %s)
"""


@dataclass(frozen=True, kw_only=True)
class ShownGate:
    """A gate that somebody may see."""

    gate: Gate  # with its run, plan, policy, team, outcome and reviewers
    standing: Proposal
    sees_run: bool  # False for a reviewer of another team, who sees only the gate
    stands: GateStanding  # how they stand to it
    draft: Draft | None  # the reader's own, perhaps of a gate that this one replaces
    looking: list[User]  # other people who have it open now, by name
    replaced: list[int]  # the withdrawn gates that it replaces, the newest first, those that the reader may see
    approvals: list[tuple[datetime, bool]]  # the reader's own last ones, for second_look
    late: bool = False  # something that it lets run should have begun by now, and nothing is known to have
    deciders: frozenset[int]  # of an open gate: ids of those who may decide now, at most two more than the quorum
    # Other open gates that ask for exactly the same, and about the same resource; the oldest first.
    the_same: list[OpenBeside] = field(default_factory=list)
    about_the_same: list[OpenBeside] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)  # the latest messages to people about it, the oldest first
    unopened: bool = False  # whether the reader was told of it and had not opened its page since
    visits: list[GateVisit] = field(default_factory=list)  # of this gate and earlier ones at its step, the newest first
    desk: GateDesk = field(default_factory=GateDesk)


def shown(gate_id: int, *, to: User, listed: bool = False) -> ShownGate | None:
    """Read a gate for its page; None where this person may not see it. Two statements, three for one that ended.

    `listed`: only what a line of a list says of it, without drafts, messages and the gates beside it, which may be 200.
    """
    found = _standing(gate_id)
    if not found:
        return None
    standing = found[0]
    gate = standing.gate
    beside = defaultdict(list, _beside(gate_id, to.pk, kind=kind_of(to), listed=listed))
    if not beside["seen"]:
        return None
    if outcome := getattr(gate, "outcome", None):
        outcome.gate = gate
        if outcome.proposal_id == standing.pk:
            outcome.proposal = standing
        granted = Grant.objects.filter(outcome=outcome)
        granted._result_cache = [Grant(outcome=outcome, **each) for each in beside["granted"]]
        outcome._prefetched_objects_cache = {"grants": granted, "decisions": counted(outcome)}
    gate.policy.reviewer_ids = beside["reviewers"]
    gate.policy.reviewers = list(map(Group, beside["reviewers"], beside["reviewer_names"]))
    gate.policy.named = [User(**each) for each in beside["named"]]
    gate.policy.person_ids = [each.pk for each in gate.policy.named]
    stands = GateStanding.of(to.pk, beside["access"]) if to.is_active else GateStanding(to.pk)
    found_desk = GateDesk(**read_desk(beside["desk"][0])) if beside["desk"] else GateDesk()
    if stands.own:
        found_desk = replace(found_desk, lenders=())  # in one's own name comes first
    gate.desk, gate.added_ids = found_desk, [team for team, _ in found_desk.added]
    gate.reviewers = [*gate.policy.reviewers, *(Group(pk=team, name=name) for team, name in found_desk.added)]
    looking = [User(**each) for each in beside["looking"]]
    draft = _draft(gate, to, beside["draft"][0]) if beside["draft"] else None
    return ShownGate(
        gate=gate, standing=standing, sees_run=bool(beside["sees_run"]), stands=stands, draft=draft,
        visits=[_visit(each) for each in beside["visits"]],
        looking=looking, replaced=beside["replaced"],
        approvals=list(zip(beside["approved_at"], beside["looked_twice"], strict=True)),
        the_same=[OpenBeside.of(each) for each in beside["beside"] if each["same"]],
        about_the_same=[OpenBeside.of(each) for each in beside["beside"] if not each["same"]], desk=found_desk,
        deciders=frozenset(beside["deciders"]), told=beside["told"], unopened=bool(beside["unopened"]),
        late=bool(beside["late"]),
    )  # fmt: skip


@prepared_statement
def _standing(gate: Any) -> QuerySet[Proposal]:
    """Read a gate's current proposal with the gate."""
    joined = Proposal.objects.select_related(
        "by", "gate__run__plan", "gate__policy__team", "gate__team", "gate__outcome"
    )
    return joined.annotate(**evidence.last_move("gate_id")).filter(gate=gate, number=F("gate__proposal"))


def counted(outcome: Outcome) -> QuerySet[Decision]:
    """Read the decisions that an outcome counted, each with its person."""
    decisions: QuerySet[Decision] = outcome.decisions.select_related("user")
    decisions._result_cache = _counted(outcome.pk)
    return decisions


@prepared_statement
def _counted(outcome: Any) -> QuerySet[Decision]:
    through = Outcome.decisions.through.objects.filter(outcome=outcome)
    return Decision.objects.select_related("user").filter(pk__in=through.values("decision"))


@prepared_statement
def _beside(pk: Any, user: Any, *, kind: PersonKind, listed: bool) -> BatchStatement:
    """Read what a gate's page needs beside the gate, or what a list needs of that."""
    reader = kind.person(user)
    seen, gate = Gate.objects.visible_to(reader), Gate.objects.filter(pk=pk)
    reviewers = ReviewingTeam.objects.filter(policy__in=gate.values("policy")).order_by("team__name")
    needed: dict[str, Any] = {
        "seen": seen.filter(pk=pk).values("pk"),
        "sees_run": gate.filter(team__in=teams_where(reader, VIEW_RUN)).values("pk"),
        "access": (_ACCESS, [pk, user]),
        "named": (_NAMED, [pk]),
        "reviewers": reviewers.values("team"),
        "reviewer_names": reviewers.values("team__name"),
        "granted": (_GRANTED, [pk]),
        "deciders": (_DECIDERS, [pk, pk]),
        "desk": (DESK, [reader.pk, reader.pk, pk]),
    }
    if listed:
        return select_columns(**needed)
    return select_columns(
        **needed,
        replaced=seen.filter(replacements=pk).order_by("-pk").values("pk"),
        draft=(_DRAFT, [pk, pk, user]),
        visits=(_VISITS, [pk, user]),
        looking=(_LOOKING, [pk, user]),
        approved_at=second_look.recent(user).values("created_at"),
        looked_twice=second_look.recent(user).values("second_look"),
        beside=statement(pk, seen.values("pk").query.sql_with_params()),
        told=(_TOLD, [pk]),
        unopened=Message.objects.unopened(user).filter(gate=pk).values("pk")[:1],
        late=Unrun.objects.late().filter(gate=pk).values("pk"),
    )


def _draft(gate: Gate, reader: User, row: dict[str, Any]) -> Draft:
    body, kept_at = b64decode(row["body"]), datetime.fromisoformat(row["kept_at"])
    known = {"gate": gate} if row["gate"] == gate.pk else {"gate_id": row["gate"]}
    return Draft(pk=row["id"], **known, user=reader, proposal=row["proposal"], body=body, kept_at=kept_at)


def _visit(row: dict[str, Any]) -> GateVisit:
    times = {name: row[name] and datetime.fromisoformat(row[name]) for name in ("at", "before_at")}
    return GateVisit(gate_id=row["gate"], proposal=row["proposal"], before=row["before"], **times)
