"""Reads who is on a gate, for its page: the claim, the added teams, who was asked, who is away, and the next level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from checkpoints.access.permissions import ADD_REVIEWERS, right_in

_NAMES = [f"'{name}', one.{name}" for name in ("id", "username", "first_name", "last_name")]
_PERSON = f"json_build_object({', '.join(_NAMES)})"
_AWAY = 20  # people who are named as away
# One row of JSON, so that the page reads all of it beside the rest. Takes the reader twice, and the gate.
DESK = f"""
SELECT json_build_object(
  'claim', (SELECT json_build_object('by', {_PERSON}, 'since', claim.since, 'looking', EXISTS (
      SELECT FROM approvals_looking look
      WHERE look.gate_id = gate.id AND look.user_id = one.id AND look.until > statement_timestamp()))
    FROM approvals_gateclaim claim JOIN auth_user one ON one.id = claim.user_id
    WHERE claim.gate_id = gate.id AND claim.until > statement_timestamp()),
  'assignee', (SELECT json_build_object('by', asked.by_name, 'at', asked.at, 'team', team.name,
      'user', (SELECT {_PERSON} FROM auth_user one WHERE one.id = asked.user_id))
    FROM approvals_assignee asked LEFT JOIN auth_group team ON team.id = asked.team_id WHERE asked.gate_id = gate.id),
  'added', ARRAY(SELECT json_build_array(team.id, team.name) FROM approvals_addedteam added
    JOIN auth_group team ON team.id = added.team_id WHERE added.gate_id = gate.id ORDER BY added.id),
  'next', (SELECT json_build_object('team', team.name, 'at', coalesce(plan.due_at, gate.deadline),
      'extends', plan.due_at IS NULL)
    FROM approvals_escalation plan JOIN auth_group team ON team.id = plan.team_id
    WHERE plan.gate_id = gate.id AND plan.status = 'planned' AND gate.status = 'open'
      AND (gate.deadline IS NULL OR coalesce(plan.due_at, gate.deadline) <= gate.deadline)
    ORDER BY coalesce(plan.due_at, gate.deadline), plan.number LIMIT 1),
  'at_deadline', (SELECT team.name FROM approvals_escalation plan JOIN auth_group team ON team.id = plan.team_id
    WHERE plan.gate_id = gate.id AND plan.status = 'planned' AND plan.due_at IS NULL AND plan.extend IS NOT NULL
    ORDER BY plan.number LIMIT 1),
  'lenders', ARRAY(SELECT {_PERSON} FROM auth_user one WHERE one.id IN (
      SELECT access.person_id FROM approvals_gate_access(ARRAY[gate.id], ARRAY[%s::bigint]) access
      WHERE access.person_id <> access.user_id) ORDER BY one.id),
  'away', ARRAY(SELECT json_build_object('who', {_PERSON}, 'until', gone.ends_at, 'delegate', (
      SELECT {_PERSON} FROM auth_user one WHERE one.id = gone.delegate_id))
    FROM approvals_delegation gone JOIN auth_user one ON one.id = gone.person_id
    WHERE gate.status = 'open' AND gone.ended_at IS NULL AND gone.starts_at <= statement_timestamp()
      AND gone.ends_at > statement_timestamp() AND EXISTS (
        SELECT FROM approvals_gate_access(ARRAY[gate.id], ARRAY[gone.person_id::bigint]) access
        WHERE access.person_id = gone.person_id)
    ORDER BY gone.ends_at, gone.id LIMIT {_AWAY}),
  'may_add', EXISTS (SELECT FROM {right_in("gate.team_id", ADD_REVIEWERS)} may WHERE may.user_id = %s)
) FROM approvals_gate gate WHERE gate.id = %s
"""  # noqa: S608 - constants


@dataclass(frozen=True, kw_only=True)
class ClaimHeld:
    """A live claim."""

    by: User
    since: datetime
    looking: bool = False  # whether its holder has the page in sight now


@dataclass(frozen=True, kw_only=True)
class AskedToAct:
    """The person or team that was asked to act."""

    who: User | str  # a person, or a team's name
    by: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class NextLevel:
    """The next level of the gate's escalation."""

    team: str
    at: datetime
    extends: bool  # whether it comes at the deadline, and moves that


@dataclass(frozen=True, kw_only=True)
class Away:
    """A reviewer who is away."""

    who: User
    until: datetime
    delegate: User | None = None


@dataclass(frozen=True, kw_only=True)
class GateDesk:
    """The people on a gate, and what is planned for it."""

    claim: ClaimHeld | None = None
    asked: AskedToAct | None = None
    next: NextLevel | None = None
    at_deadline: str = ""  # the team of the level by which the deadline moves on, so that it ends nothing
    added: Sequence[tuple[int, str]] = ()  # id and name of the teams that were added to the reviewers
    lenders: Sequence[User] = ()  # who is away and has the reader decide for them, who is no reviewer here anyway
    away: Sequence[Away] = field(default_factory=list)
    may_add: bool = False  # whether the reader may add a team to the reviewers

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]]) -> GateDesk:
        """Read what DESK selects."""
        if not rows:
            return cls()
        said = rows[0]
        claim, asked, level = said["claim"], said["assignee"], said["next"]
        return cls(
            claim=ClaimHeld(by=User(**claim["by"]), since=_at(claim["since"]), looking=claim["looking"])
            if claim else None,
            asked=AskedToAct(who=User(**asked["user"]) if asked["user"] else asked["team"], by=asked["by"],
                        at=_at(asked["at"])) if asked else None,
            next=NextLevel(team=level["team"], at=_at(level["at"]), extends=level["extends"])
            if level and level["at"] else None,
            at_deadline=said["at_deadline"] or "",
            added=[(team, name) for team, name in said["added"]],
            lenders=[User(**each) for each in said["lenders"]],
            away=[
                Away(who=User(**each["who"]), until=_at(each["until"]),
                     delegate=User(**each["delegate"]) if each["delegate"] else None)
                for each in said["away"]
            ],
            may_add=said["may_add"],
        )  # fmt: skip


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)
