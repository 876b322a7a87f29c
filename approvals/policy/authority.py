"""Checks who may decide a gate: when somebody decides, and again for every voter when a quorum closes.

People decide in their own name, as members of the policy's teams or of those added to the gate, or because the policy
names them; or for somebody who is away and would be one of these teams (approvals.models.assignments.reviewers).
Whoever may not decide by separation of duties decides for nobody, and nobody decides for them. In their own name comes
first: then nobody's authority is used up. Somebody of an added team may fill any role, see approvals.policy.required.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.contrib.auth.models import User

from approvals.models import AddedTeam, Decision, Gate
from checkpoints.access.permissions import ASK, DECIDE_GATE, IN_TEAMS
from checkpoints.actors import of_user
from checkpoints.postgresql.prepared_rows import type_numbers
from checkpoints.postgresql.sql import run_sql

from .separation import apart_from, why_apart
from .tally import Tally

SWITCHED_OFF = "This account is switched off; ask an administrator."
FOR_NOBODY = "You would decide this for somebody who is away, and who may not decide it."

# $1 people, $2 the gate: a row for each who is active, and one for each authority and team by which they may decide.
# The array stands in a SELECT of its own: PostgreSQL would else count its elements, take the plan for these few to be
# cheaper than the one that it keeps, and plan the statement anew each time.
_STANDINGS = """
SELECT id, NULL::int, NULL::int FROM auth_user WHERE is_active AND id = ANY((SELECT $1::bigint[])::bigint[])
UNION ALL SELECT user_id, person_id, team_id FROM approvals_gate_access(ARRAY[$2::bigint], $1::bigint[])
"""
_ACCESS = "SELECT gate_id, user_id, person_id, team_id FROM approvals_gate_access($1::bigint[])"


class Seat(NamedTuple):
    """One person's place at a gate: why not, in which teams, and by whose authority."""

    why_not: str
    teams: frozenset[int]
    person: int


@dataclass(frozen=True)
class GateStanding:
    """One person's standing at a gate, before separation of duties."""

    person: int
    # By whose authority they may decide, their own or of who is away, and in which teams: none where the policy names
    # that person. None for an account that is switched off.
    by: Mapping[int, frozenset[int]] | None = None

    @classmethod
    def of(cls, person: int, rows: Iterable[Sequence[int | None]]) -> GateStanding:
        """Return how an active person stands by these rows: (whose authority, the team or None)."""
        by: dict[int, frozenset[int]] = {}
        for authority, team in rows:
            if authority is not None:
                by[authority] = by.get(authority, frozenset()) | ({team} if team else frozenset())
        return cls(person, by)

    @property
    def own(self) -> bool:
        """Tell whether they may decide in their own name."""
        return self.person in (self.by or ())

    def only(self, authority: int) -> GateStanding:
        """Return how they stand by this authority alone."""
        return GateStanding(self.person, self.by and {each: self.by[each] for each in self.by if each == authority})


def standings(people: Collection[int], gate: Gate) -> dict[int, GateStanding]:
    """Read how these people stand to the gate now, by id, in one statement.

    A superuser has no authority here without being in the teams. Teams, permissions and the account's state are read
    from the database, whatever the caller's objects say.
    """
    rows: dict[int, list[Sequence[int | None]]] = {}
    for one, *row in run_sql(_STANDINGS, list(map(type_numbers, [list(people), gate.pk]))):
        rows.setdefault(one, []).append(row)
    return {one: GateStanding.of(one, rows[one]) if one in rows else GateStanding(one) for one in people}


def seat(stands: GateStanding, gate: Gate, *, used: Collection[int], count: Tally) -> Seat:
    """Return how somebody who stands so to the gate may decide now: in their own name, else for somebody who is away.

    Of these one whose authority others have not `used`, and the nearest to a say by this `count`.
    """
    why, by = reason(stands, gate), stands.by or {}
    if stands.own or why:
        return Seat(why, by.get(stands.person, frozenset()), stands.person)
    may = by.keys() - apart_from(gate)
    behalf = min(may, key=lambda each: (each in used, count.distance(each, by[each]), each))
    return Seat("", by[behalf], behalf)


def seat_of(vote: Decision, now: GateStanding, gate: Gate) -> Seat:
    """Return how the voter, who stands so to the gate now, may decide by the authority that the vote used."""
    stands = now.only(vote.authority)
    why = reason(stands, gate)
    teams = (stands.by or {}).get(vote.authority, frozenset())
    return Seat(FOR_NOBODY if why and vote.on_behalf_of_id is not None else why, teams, vote.authority)


def why_not(user: User, gate: Gate) -> str:
    """Say why this person may not decide this gate, as a sentence; "" where they may."""
    return reason(standings([user.pk], gate)[user.pk], gate)


def lapsed(votes: Collection[Decision], gate: Gate) -> list[int]:
    """List the voters whose vote no longer counts, by the authority that it used, as that is now."""
    now = standings([each.user_id for each in votes], gate) if votes else {}
    return [each.user_id for each in votes if seat_of(each, now[each.user_id], gate).why_not]


def reason(stands: GateStanding, gate: Gate) -> str:
    """Say why somebody who stands so may not decide this gate; "" where they may, once their stage is reached."""
    if stands.by is None:
        return SWITCHED_OFF
    if not stands.by:
        named = " or ".join(of_user(each).name for each in gate.policy.named)
        if not gate.reviewers:
            return f"Only {named} can decide this."
        names = " or ".join([*(group.name for group in gate.reviewers), *filter(None, [named])])
        # Of many gates: names nobody to ask.
        return f"Only people in {names} with the permission “{IN_TEAMS[DECIDE_GATE]}” can decide this. {ASK}"
    if apart := why_apart(stands.person, gate):
        return apart
    return "" if stands.own or stands.by.keys() - apart_from(gate) else FOR_NOBODY


def deciders(gate: Gate) -> set[int]:
    """Return the ids of the people who may decide this gate in their own name, once their stage is reached."""
    own = {user for _, user, person, _ in run_sql(_ACCESS, [type_numbers([gate.pk])]) if user == person}
    return own - apart_from(gate)


def may_decide(gates: Collection[Gate], *, used: Collection[tuple[int, int]] = ()) -> dict[int, set[int]]:
    """Return, by gate, the ids of all the people whose decision it waits for now; the gates need their runs.

    `used`: each (gate, person) whose authority a vote has used, so that nobody stands in for them. Two statements.
    """
    here = {gate.pk: gate for gate in gates}
    added = set(AddedTeam.objects.filter(gate__in=here).values_list("gate", "team"))
    rows: dict[int, list[tuple[int, int, int | None]]] = {pk: [] for pk in here}
    for pk, user, person, team in run_sql(_ACCESS, [type_numbers(list(here))]):
        rows[pk].append((user, person, team))
    found = {}
    for pk, gate in here.items():
        apart, reviewers = apart_from(gate), {user for user, person, _ in rows[pk] if user == person}
        asked = {
            person for user, person, team in rows[pk]
            if user == person and (not gate.awaits or (team or -person) in gate.awaits or (pk, team) in added)
        } - apart  # fmt: skip
        free = {person for person in asked if (pk, person) not in used}
        standing_in = {user for user, person, _ in rows[pk] if person in free} - reviewers  # own name comes first
        found[pk] = asked | (standing_in - apart)
    return found
