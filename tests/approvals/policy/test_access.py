"""Whoever has authority over a gate: the database's function, and what reads it or the same rows, against the rules.

A country has teams, people, policies and people who are away; each of its gates is a world of its own. Nothing of the
rules below is taken from the product.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from approvals.gates.lists.queues import MINE, ReaderReach
from approvals.gates.reading import with_reviewers
from approvals.gates.waiting import waiting_for
from approvals.models import AddedTeam, Delegation, Gate, Policy
from approvals.policy import authority
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import type_numbers
from checkpoints.postgresql.sql import number_parameters, run_sql
from config.local.servers import DATABASE
from tests.factories import make_gate, make_policy, make_run, make_team, make_user, unique
from tests.factories.people import permissions
from tests.harness.examples import trying_all
from tests.harness.session import Session
from tests.harness.undone import undone

DAY = timedelta(days=1)
DECIDE = "approvals.decide_gate"
FEW_GATES, GATES, COUNTRIES = 150, 1_000, 100
Row = tuple[int, int, int | None]  # who, by whose authority, in which team


@dataclass(kw_only=True)
class Country:
    """Random teams, people, policies and absences. The rules read only what was written here."""

    dice: random.Random
    teams: list[Group] = field(default_factory=list)
    people: list[User] = field(default_factory=list)
    members: dict[int, set[int]] = field(default_factory=dict)  # person -> teams
    deciding: set[int] = field(default_factory=set)  # teams whose members may decide
    personally: set[int] = field(default_factory=set)  # people who may in each of their teams
    active: set[int] = field(default_factory=set)
    policies: list[Policy] = field(default_factory=list)
    asked: dict[int, tuple[set[int], set[int]]] = field(default_factory=dict)  # policy -> teams and people
    away: list[Delegation] = field(default_factory=list)
    gates: list[Gate] = field(default_factory=list)
    added: dict[int, set[int]] = field(default_factory=dict)  # gate -> teams

    @classmethod
    def made(cls, seed: int, gates: int) -> Country:
        found = cls(dice=random.Random(seed))
        found.settle()
        found.rule()
        found.leave()
        found.open(gates)
        return found

    def some(self, of: list[Any], most: int) -> list[Any]:
        return self.dice.sample(of, self.dice.randint(0, most))

    def settle(self) -> None:
        self.teams = [make_team(f"Team {number}", may=()) for number in range(5)]
        for team in self.teams[:4]:  # the last one decides nothing
            team.permissions.add(*permissions((DECIDE,)))
            self.deciding.add(team.pk)
        self.people = [make_user(f"Person {number}") for number in range(9)]
        for person in self.people:
            there = self.some(self.teams, 3)
            person.groups.set(there)
            self.members[person.pk] = {team.pk for team in there}
            if self.dice.random() < 0.15:
                person.user_permissions.add(*permissions((DECIDE,)))
                self.personally.add(person.pk)
            if self.dice.random() < 0.9:
                self.active.add(person.pk)
            else:
                User.objects.filter(pk=person.pk).update(is_active=False)

    def rule(self) -> None:
        for number in range(12):
            team, groups = self.dice.choice(self.teams), self.some(self.teams, 2)
            people = self.some(self.people, 2) if self.dice.random() < 0.4 else []
            made = make_policy(
                team, name=unique(f"p{number}"), groups=tuple(groups), people=tuple(people), quorum=1,
                separation=self.dice.random() < 0.5,
            )  # fmt: skip
            own = set() if people else {team.pk}
            self.asked[made.pk] = ({each.pk for each in groups} or own, {each.pk for each in people})
            self.policies.append(made)

    def leave(self) -> None:
        now = timezone.now()
        for person in self.dice.sample(self.people, 6):
            begins, lasts = self.dice.choice([(-1, 2), (-1, 2), (-1, 2), (1, 2), (-3, 2)])  # so, planned, over
            self.away.append(Delegation(
                person=person, delegate=self.dice.choice([one for one in self.people if one != person]),
                starts_at=now + begins * DAY, ends_at=now + (begins + lasts) * DAY,
                ended_at=now if self.dice.random() < 0.1 else None,
                teams=[team.pk for team in self.some(self.teams, 3)] if self.dice.random() < 0.3 else [],
                policies=[each.name for each in self.some(self.policies, 9)] if self.dice.random() < 0.3 else [],
            ))  # fmt: skip
        Delegation.objects.bulk_create(self.away)

    def open(self, many: int) -> None:
        starters = [None, *self.dice.sample(self.people, 2)]
        runs: dict[tuple[int, int], Run] = {
            (team.pk, at): make_run(team=team, started_by=by) for team in self.teams for at, by in enumerate(starters)
        }
        first, rows = make_gate(policy=self.policies[0]), []
        for _ in range(many):
            policy, gate = self.dice.choice(self.policies), copy(first)
            gate._state = copy(first._state)
            gate.pk, gate._state.adding = None, True
            gate.checkpoint, gate.policy, gate.team = uuid.uuid4(), policy, policy.team
            gate.run = runs[policy.team_id, self.dice.randrange(len(starters))]
            gate.asked_by = self.dice.choice(self.people) if self.dice.random() < 0.2 else None
            gate.authors = [each.pk for each in self.some(self.people, 2)] if self.dice.random() < 0.2 else []
            teams, people = self.asked[policy.pk]
            gate.awaits = [each for each in [*teams, *(-one for one in people)] if self.dice.random() < 0.4]
            rows.append(gate)
        self.gates = Gate.objects.bulk_create(rows)
        adds = [AddedTeam(gate=gate, team=self.dice.choice(self.teams), by="system") for gate in self.gates[::3]]
        AddedTeam.objects.bulk_create(adds)
        self.added = {each.gate_id: {each.team_id} for each in adds}

    # The rules

    def reviewing(self, gate: Gate) -> set[int]:
        """The policy's groups, or its own team where it names nobody; and the teams that were added to the gate."""
        return self.asked[gate.policy_id][0] | self.added.get(gate.pk, set())

    def own(self, gate: Gate, person: int) -> set[int | None]:
        """The teams by which somebody decides in their own name, and None where the policy names them."""
        if person not in self.active:
            return set()
        may = {team for team in self.members[person] if person in self.personally or team in self.deciding}
        named: set[int | None] = {None} if person in self.asked[gate.policy_id][1] else set()
        return named | (may & self.reviewing(gate))

    def lent(self, gate: Gate, now: datetime) -> Iterator[Row]:
        """What somebody who is away might do here, whoever decides for them and shares a group with them may do."""
        for each in self.away:
            person, delegate = each.person_id, each.delegate_id
            if delegate is None or delegate not in self.active or not self.members[person] & self.members[delegate]:
                continue
            if each.ended_at is not None or not each.starts_at <= now < each.ends_at:
                continue
            if (not each.teams or gate.team_id in each.teams) and (
                not each.policies or gate.policy.name in each.policies
            ):
                yield from ((delegate, person, team) for team in self.own(gate, person))

    def rows(self, gate: Gate, now: datetime) -> set[Row]:
        own = {(one.pk, one.pk, team) for one in self.people for team in self.own(gate, one.pk)}
        return own | set(self.lent(gate, now))

    def apart(self, gate: Gate) -> set[int | None]:
        """Whoever started the run, asks, or wrote what is asked about may not decide, by separation of duties."""
        if not gate.policy.separation:
            return set()
        return {gate.run.started_by_id, gate.asked_by_id, *(gate.authors or ())}

    def asks(self, gate: Gate, now: datetime) -> set[int]:
        """Whose decision it waits for: whoever is asked in their own name, and who decides for one of them."""
        rows, apart = self.rows(gate, now), self.apart(gate)
        own = {who for who, person, _ in rows if who == person}
        asked = {
            who for who, person, team in rows
            if who == person and who not in apart
            and (not gate.awaits or (team or -who) in gate.awaits or team in self.added.get(gate.pk, ()))
        }  # fmt: skip
        return asked | {who for who, person, _ in rows if person in asked and who not in own and who not in apart}


@pytest.fixture(autouse=True)
def cleared(servers: Session) -> Iterator[None]:
    """Remove what is left of the country before: where autovacuum found its pages and no rows, plans are for none."""
    with psycopg.connect(servers.postgres.url(DATABASE), autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET autovacuum = off")
        admin.execute("SELECT pg_reload_conf()")
        admin.execute("VACUUM")
        yield
        admin.execute("ALTER SYSTEM RESET autovacuum")
        admin.execute("SELECT pg_reload_conf()")


@pytest.mark.parametrize("seed", range(COUNTRIES) if trying_all() else [6, 7, 13])
@pytest.mark.examples
def test_whoever_has_authority_over_a_gate_is_asked_and_finds_it_and_nobody_else(seed: int) -> None:
    with undone():  # gates are made by the thousand, and no event tells of them
        compare(Country.made(seed, GATES if trying_all() else FEW_GATES), timezone.now())


def compare(here: Country, now: datetime) -> None:
    gates = with_reviewers([gate.pk for gate in here.gates])
    rows: dict[int, set[Row]] = {gate.pk: set() for gate in gates}
    for pk, who, person, team in run_sql("SELECT * FROM approvals_gate_access($1::bigint[])", [list(rows)]):
        rows[pk].add((who, person, team))
    assert [gate.pk for gate in gates if rows[gate.pk] != here.rows(gate, now)] == []
    asked = {gate.pk: here.asks(gate, now) for gate in gates}
    assert sum(map(len, asked.values())) > len(gates) / 4, "a country in which hardly anybody is asked proves nothing"
    assert authority.may_decide(gates) == asked
    everybody = [one.pk for one in here.people]
    for gate in gates[::10]:
        standings = authority.standings(everybody, gate)
        assert {one for one in everybody if standings[one].by is not None} == here.active
        told = {(one, person) for one in everybody for person in standings[one].by or ()}
        assert told == {(who, person) for who, person, _ in rows[gate.pk]}
    for one in User.objects.filter(pk__in=everybody):
        mine = rows.keys() & ReaderReach.of(one).ids(MINE, most=2 * len(gates))
        assert mine == {pk for pk, people in asked.items() if one.pk in people}
        sql, values = waiting_for(one, 2 * len(gates))
        assert mine == rows.keys() & {pk for (pk,) in run_sql(number_parameters(sql), list(map(type_numbers, values)))}
        seen = set(Gate.objects.visible_to(one).filter(pk__in=rows).values_list("pk", flat=True))
        assert seen == {pk for pk, each in rows.items() if one.pk in {who for who, *_ in each}}
