"""Reads who is on a gate, for its page: the claim, the added teams, who was asked, who is away, and the next level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
  'asked', (SELECT json_build_object('by', asked.by_name, 'at', asked.at,
      'who', coalesce((SELECT {_PERSON} FROM auth_user one WHERE one.id = asked.user_id), to_json(team.name)))
    FROM approvals_assignee asked LEFT JOIN auth_group team ON team.id = asked.team_id WHERE asked.gate_id = gate.id),
  'added', ARRAY(SELECT json_build_array(team.id, team.name) FROM approvals_addedteam added
    JOIN auth_group team ON team.id = added.team_id WHERE added.gate_id = gate.id ORDER BY added.id),
  'next', (SELECT json_build_object('team', team.name, 'at', coalesce(plan.due_at, gate.deadline),
      'extends', plan.due_at IS NULL)
    FROM approvals_escalation plan JOIN auth_group team ON team.id = plan.team_id
    WHERE plan.gate_id = gate.id AND plan.status = 'planned' AND gate.status = 'open'
      AND coalesce(plan.due_at, gate.deadline) IS NOT NULL
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
class GateDesk:
    """The people on a gate, and what is planned for it: what DESK selects, with people as users and times as such."""

    claim: Mapping[str, Any] | None = None  # by, since, looking: whether its holder has the page in sight now
    asked: Mapping[str, Any] | None = None  # who was asked to act, a person or a team's name; by whom, at
    next: Mapping[str, Any] | None = None  # team, at, extends: whether it comes at the deadline, and moves that
    at_deadline: str | None = None  # the team of the level by which the deadline moves on, so that it ends nothing
    added: Sequence[tuple[int, str]] = ()  # id and name of the teams that were added to the reviewers
    lenders: Sequence[User] = ()  # who is away and has the reader decide for them, who is no reviewer here anyway
    away: Sequence[Mapping[str, Any]] = ()  # who, until, delegate: the person who decides meanwhile, if any
    may_add: bool = False  # whether the reader may add a team to the reviewers


def read_desk(value: Any) -> Any:
    """Return a part of what DESK selects with people as users, and times as such."""
    if isinstance(value, list):
        return [read_desk(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "username" in value:
        return User(**value)
    return {
        name: datetime.fromisoformat(part) if name in ("since", "at", "until") else read_desk(part)
        for name, part in value.items()
    }
