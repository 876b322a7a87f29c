"""Whoever is behind a run decides none of its gates where duties are separated: in Python as in SQL."""

from __future__ import annotations

from itertools import product

import pytest
from django.contrib.auth.models import User
from django.db import connection

from approvals.gates.lists.queues import MINE, ReaderReach
from approvals.models import Gate
from approvals.policy import authority, separation
from tests.factories import ann, bob, make_gate, make_policy, make_team
from tests.factories.gates import change_gate

APART = f"""
SELECT {separation.APART} FROM approvals_gate g JOIN approvals_policy s ON s.id = g.policy_id WHERE g.id = %s
"""


def apart_in_sql(person: User, gate: Gate) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(APART, [person.pk, person.pk, person.pk, gate.pk])
        ((answer,),) = cursor.fetchall()
    assert isinstance(answer, bool), "NULL is neither yes nor no, and NOT of it hides a gate from everybody"
    return answer


@pytest.mark.parametrize("separated", [True, False])
def test_both_forms_agree_whoever_started_the_run_asks_and_wrote_its_state(separated: bool) -> None:
    team = make_team()
    people = [ann(team), bob(team)]
    policy = make_policy(team, separation=separated)
    seen = set()
    for starter, asker, author in product([*people, None], repeat=3):
        gate = make_gate(policy=policy, started_by=starter)
        change_gate(gate, asked_by=asker, authors=[author.pk] if author else [])
        gate = Gate.objects.select_related("run", "policy").get(pk=gate.pk)
        for person in people:
            behind = separated and person in (starter, asker, author)
            assert apart_in_sql(person, gate) == (person.pk in separation.apart_from(gate)) == behind
            assert bool(separation.why_apart(person.pk, gate)) == bool(authority.why_not(person, gate)) == behind
            assert (gate.pk in ReaderReach.of(person).ids(MINE, most=100)) == (not behind)
            seen.add(behind)
    assert seen == {separated, False}
