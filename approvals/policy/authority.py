"""Checks who may decide a gate: when somebody decides, and again for every voter when a quorum closes.

People decide in their own name, as members of the policy's teams or of those added to the gate, or because the policy
names them; or for somebody who is away and would be one of these teams (approvals.models.assignments.delegation).
Whoever may not decide by separation of duties decides for nobody, and nobody decides for them. In their own name comes
first: then nobody's authority is used up. Somebody of an added team may fill any role, see approvals.policy.required.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from django.contrib.auth.models import User

from approvals.models import AddedTeam, Decision, Delegation, Gate, LentPolicy
from checkpoints.access.missing_permission import ASK, IN_TEAMS
from checkpoints.access.permissions import DECIDE_GATE, members_where, right_in
from checkpoints.actors import of_user
from checkpoints.postgresql.prepared_rows import type_numbers
from checkpoints.postgresql.sql import run_sql

from .separation import apart_from, why_apart
from .tally import Tally

SWITCHED_OFF = "This account is switched off; ask an administrator."
FOR_NOBODY = "You would decide this for somebody who is away, and who may not decide it."

# Each array stands in a SELECT of its own: PostgreSQL would else count its elements, take the plan for these few to be
# cheaper than the one that it keeps, and plan the statement anew each time.
_TEAMS = """(SELECT unnest((SELECT $2::bigint[])) AS id
    UNION SELECT added.team_id FROM approvals_addedteam added WHERE added.gate_id = $3)"""
# $1 people, $2 the policy's teams, $3 the gate: who is active, in which teams each may decide, and who was named by
# somebody to stand in. In whose name is read by a statement of its own: PostgreSQL plans it for several milliseconds,
# and hardly anybody stands in for others.
_STANDING = f"""
SELECT one.id,
  ARRAY(SELECT team.id FROM {_TEAMS} team WHERE one.id IN {right_in("team.id", DECIDE_GATE)}),
  EXISTS (SELECT FROM approvals_delegation given WHERE given.delegate_id = one.id AND given.ended_at IS NULL
    AND given.starts_at <= statement_timestamp() AND given.ends_at > statement_timestamp())
FROM auth_user one WHERE one.is_active AND one.id = ANY((SELECT $1::bigint[])::bigint[])
"""  # noqa: S608 - constants
# $4 the policy: in whose name each of these people may decide, in which team; null where the policy names who is away.
_LENT = f"""
SELECT lent.delegate_id, lent.person_id, lent.team_id
FROM approvals_lent lent JOIN {_TEAMS} team ON team.id = lent.team_id
WHERE lent.delegate_id = ANY((SELECT $1::bigint[])::bigint[]) AND (
  EXISTS (SELECT FROM approvals_lentpolicy p WHERE p.policy_id = $4 AND p.delegate_id = lent.delegate_id
    AND p.person_id = lent.person_id)
  OR EXISTS (SELECT FROM approvals_lentteam t JOIN approvals_addedteam added ON added.id = t.added_id
    WHERE added.gate_id = $3 AND t.delegate_id = lent.delegate_id AND t.person_id = lent.person_id))
UNION ALL
SELECT lent.delegate_id, lent.person_id, NULL FROM approvals_lentpolicy lent
JOIN approvals_policy_people named ON named.policy_id = lent.policy_id AND named.user_id = lent.person_id
WHERE lent.policy_id = $4 AND lent.delegate_id = ANY((SELECT $1::bigint[])::bigint[])
ORDER BY 2, 3
"""  # noqa: S608 - constants


class Seat(NamedTuple):
    """One person's standing at a gate: why not, in which teams, and by whose authority."""

    why_not: str
    teams: frozenset[int]
    person: int


@dataclass(frozen=True)
class GateStanding:
    """One person's authority at a gate, before separation of duties."""

    teams: frozenset[int] | None  # in which they decide in their own name; None for an account that is switched off
    # Who is away, and in which teams they would; no team is needed where the policy names them.
    lenders: Mapping[int, frozenset[int]] = field(default_factory=dict)


def standings(people: Collection[int], gate: Gate) -> dict[int, GateStanding]:
    """Read how these people stand to the gate now, by id. One statement, and one more for those who stand in.

    A superuser has no authority here without being in the teams. Teams, permissions and the account's state are read
    from the database, whatever the caller's objects say.
    """
    found, standing_in = {}, []
    here = [gate.policy.reviewer_ids, gate.pk]
    for one, teams, named in run_sql(_STANDING, list(map(type_numbers, [list(people), *here]))):
        found[one] = GateStanding(frozenset(teams))
        if named:
            standing_in.append(one)
    if standing_in:
        for one, person, team in run_sql(_LENT, list(map(type_numbers, [standing_in, *here, gate.policy_id]))):
            lenders = found[one].lenders
            away = {**lenders, person: lenders.get(person, frozenset()) | ({team} if team else frozenset())}
            found[one] = GateStanding(found[one].teams, away)
    return {one: found.get(one, GateStanding(None)) for one in people}


def seat(person: int, now: GateStanding, gate: Gate, *, used: Collection[int], count: Tally) -> Seat:
    """Return how somebody who stands so to the gate may decide now: in their own name, else for somebody who is away.

    Of these one whose authority others have not `used`, and the nearest to a say by this `count`.
    """
    why = reason(person, now.teams, gate, now.lenders)
    if now.teams or person in gate.policy.person_ids or why:
        return Seat(why, now.teams or frozenset(), person)
    may = [each for each in now.lenders if each not in apart_from(gate)]
    behalf = min(may, key=lambda each: (each in used, count.distance(each, now.lenders[each]), each))
    return Seat("", now.lenders[behalf], behalf)


def seat_of(vote: Decision, now: GateStanding, gate: Gate) -> Seat:
    """Return how the voter, who stands so to the gate now, may decide by the authority that the vote used."""
    away = vote.on_behalf_of_id
    if away is None:
        return Seat(reason(vote.user_id, now.teams, gate), now.teams or frozenset(), vote.user_id)
    ended = now.teams is None or away not in now.lenders or not apart_from(gate).isdisjoint((vote.user_id, away))
    return Seat(str(FOR_NOBODY) if ended else "", now.lenders.get(away, frozenset()), away)


def why_not(user: User, gate: Gate) -> str:
    """Say why this person may not decide this gate, as a sentence; "" where they may."""
    now = standings([user.pk], gate)[user.pk]
    return reason(user.pk, now.teams, gate, now.lenders)


def lapsed(votes: Collection[Decision], gate: Gate) -> list[int]:
    """List the voters whose vote no longer counts, by the authority that it used, as that is now."""
    now = standings([each.user_id for each in votes], gate) if votes else {}
    return [each.user_id for each in votes if seat_of(each, now[each.user_id], gate).why_not]


def reason(person: int, teams: Collection[int] | None, gate: Gate, lenders: Collection[int] = ()) -> str:
    """Say why this person may not decide this gate at all; "" where they may, once their stage is reached.

    `teams` and `lenders` as `GateStanding` has them. People whom the policy names need no team.
    """
    if teams is None:
        return str(SWITCHED_OFF)
    own = teams or person in gate.policy.person_ids
    if not own and not lenders:
        named = " or ".join(of_user(each).name for each in gate.policy.named)
        if not gate.reviewers:
            return f"Only {named} can decide this."
        names = " or ".join([*(group.name for group in gate.reviewers), *filter(None, [named])])
        # Of many gates: names nobody to ask.
        return f"Only people in {names} with the permission “{IN_TEAMS[DECIDE_GATE]}” can decide this. {ASK}"
    if apart := why_apart(person, gate):
        return apart
    return "" if own or set(lenders) - apart_from(gate) else str(FOR_NOBODY)


def may_decide(gates: Collection[Gate], *, used: Collection[tuple[int, int]] = ()) -> dict[int, set[int]]:
    """Return, by gate, the ids of all the people whose decision it waits for now; the gates need their runs.

    `used`: each (gate, person) whose authority a vote has used, so that nobody stands in for them.
    """
    added: dict[int, set[int]] = {gate.pk: set() for gate in gates}
    added_here = AddedTeam.objects.filter(gate__in=added)
    for pk, team in added_here.values_list("gate", "team"):
        added[pk].add(team)
    reviewing = {gate.pk: {*gate.policy.reviewer_ids} | added[gate.pk] for gate in gates}
    there = members_where(DECIDE_GATE, teams={team for gate in gates for team in _teams(gate) | reviewing[gate.pk]})
    named = {person for gate in gates for person in _named(gate)}
    active = set(User.objects.filter(pk__in=named, is_active=True).values_list("pk", flat=True)) if named else set()
    lent, lent_here = [], []
    if Delegation.objects.now().filter(delegate__isnull=False).exists():  # else PostgreSQL only plans what is lent
        policies = [gate.policy_id for gate in gates]
        lent = list(LentPolicy.objects.filter(policy__in=policies).values_list("pk", flat=True))
        lent_here = list(added_here.values_list("gate", "lent__delegate", "lent__person"))
    found = {}
    for gate in gates:
        own = set(active & _named(gate)).union(*(there[team] for team in _teams(gate) | added[gate.pk]))
        may = own - apart_from(gate)
        free = {person for person in may if (gate.pk, person) not in used}
        delegates = {to for policy, to, person in lent if policy == gate.policy_id and person in free}
        delegates |= {to for pk, to, person in lent_here if pk == gate.pk and person in free}
        reviewers = set(gate.policy.person_ids).union(*(there[team] for team in reviewing[gate.pk]))
        found[gate.pk] = may | (delegates - apart_from(gate) - reviewers)  # who decide in their own name
    return found


def _teams(gate: Gate) -> set[int]:
    return {each for each in gate.awaits if each > 0} if gate.awaits else set(gate.policy.reviewer_ids)


def _named(gate: Gate) -> set[int]:
    return {-each for each in gate.awaits if each < 0} if gate.awaits else set(gate.policy.person_ids)
