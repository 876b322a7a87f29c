"""Queues: whose a gate is to decide, and who may see it, as the rules say it of one gate at a time."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from django.db import connection, transaction

from approvals.gates.lists.queue_filters import QueueFilters
from approvals.gates.lists.queues import ALL, DECIDED, MINE, MINE_DECIDED, ReaderReach
from approvals.gates.page import shown_gate
from approvals.models import Gate
from approvals.policy import authority, enough_reviewers
from checkpoints.access.token_scope import TokenBounds
from tests.factories import ann, bob, decide, eve, make_card, make_gate, make_policy, make_team
from tests.harness.sent_statements import sent


def test_the_queues_hold_what_the_rules_of_one_gate_say() -> None:
    teams = [make_team(), make_team("Finance"), make_team("Ops")]
    people = [ann(teams[0]), bob(teams[1]), eve()]
    people[1].groups.add(teams[2])
    dice = random.Random(7)
    policies = [make_policy(teams[n % 3], name=f"p{n}", groups=(teams[dice.randrange(3)],) if n % 2 else (), quorum=2)
                for n in range(6)]  # fmt: skip
    for n in range(30):
        gate = make_gate(policy=policies[n % 6], started_by=people[n % 4] if n % 4 < 3 else None)
        willing = [each for each in people if not authority.why_not(each, gate)]
        for each in willing[: dice.randrange(3)]:
            decide(gate, each)
    for person in people:
        reach = ReaderReach.of(person)
        visible = Gate.objects.visible_to(person)
        mine = [gate.pk for gate in visible if gate.status == "open" and not authority.why_not(person, gate)
                and not gate.decisions.filter(user=person, counts=True).exists()]  # fmt: skip
        closed = [gate for gate in visible if gate.status != "open"]
        assert sorted(reach.ids(MINE, most=100)) == sorted(mine)
        assert sorted(reach.ids(ALL, most=100)) == sorted(gate.pk for gate in visible if gate.status == "open")
        assert sorted(reach.ids(DECIDED, most=100)) == sorted(gate.pk for gate in closed)
        own = {gate.pk for gate in closed if not authority.why_not(person, gate)}
        assert set(reach.ids(MINE_DECIDED, most=100)) == own
        for gate in Gate.objects.order_by("-pk")[:40]:  # ten of them are of other tests
            page = shown_gate.shown(gate.pk, to=person)
            assert (page is not None) == (gate in visible), "one rule says who sees a gate, in lists and on its page"
            if page is not None and gate.status == "open":
                assert authority.reason(person.pk, page.decides, page.gate) == authority.why_not(person, gate)
                (there,) = enough_reviewers.people(gate.policy.reviewers)
                assert page.deciders <= there
                assert len(page.deciders) == min(len(there), gate.policy.quorum + 1)
        counts, _ = reach.figures([(MINE, QueueFilters()), (ALL, QueueFilters())], agents_of=ALL)
        assert [each.number for each in counts.values()] == [len(mine), len(reach.ids(ALL, most=100))]


def test_a_queue_takes_as_many_statements_for_many_gates_as_for_few() -> None:
    team, other = make_team(), make_team("Finance")
    reader = ann(team)
    for n in range(12):
        make_gate(team=other if n % 3 else team, card=make_card(title=f"Gate {n}"))
    with sent() as few:
        ReaderReach.of(reader).gates(MINE, most=5)
    for n in range(12, 40):
        make_gate(team=team, card=make_card(title=f"Gate {n}"))
    with sent() as many:
        ReaderReach.of(reader).gates(MINE, most=5)
    assert len(many) == len(few) == 6


def test_a_token_of_one_team_shows_the_same_gates_in_lists_and_on_their_pages() -> None:
    """A list left out what its owner reviews for the team as a member of another, while the gate's page showed it."""
    team, finance = make_team(), make_team("Finance")
    lent, own = make_gate(policy=make_policy(team, groups=(finance,))), make_gate(team=finance)
    for bound, shown in ((team, {lent}), (finance, {own}), (None, {lent, own})):
        reader: Any = bob(finance)
        reader.bounds = TokenBounds(bound.pk if bound else None)
        assert set(Gate.objects.visible_to(reader)) == shown
        assert {gate for gate in (lent, own) if shown_gate.shown(gate.pk, to=reader)} == shown
        assert set(ReaderReach.of(reader).ids(ALL, most=100)) == {gate.pk for gate in shown}


def test_what_follows_a_gate_is_the_rest_of_the_queue_with_and_without_deadlines() -> None:
    team = make_team()
    reader = ann(team)
    soon = make_policy(team, name="soon", deadline=timedelta(hours=1))
    later = make_policy(team, name="later", deadline=timedelta(hours=2))
    never = make_policy(team, name="never")
    for policy in (later, never, soon, never, later):
        make_gate(team=team, policy=policy)
    reach = ReaderReach.of(reader)
    for queue in (MINE, ALL):
        whole = reach.ids(queue, most=9)
        assert len(whole) == 5
        for at, gate in enumerate(whole, start=1):
            assert reach.ids(queue, most=9, wanted=QueueFilters(after=gate)) == whole[at:]


def test_what_follows_a_gate_begins_in_the_index_where_that_gate_stands() -> None:
    """All gates before it were read: a decision among fifty thousand open gates took a tenth of a second."""
    reach = ReaderReach.of(ann(make_team()))
    for queue, begins in ((MINE, "ROW(deadline, opened_at, id) >"), (MINE_DECIDED, "ROW(closed_at, id) <")):
        statement, values = reach._select(queue, 1, QueueFilters(after=7))
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {statement}", values)
            plan = "\n".join(line for (line,) in cursor.fetchall())
        assert [line for line in plan.split("\n") if "Index Cond" in line and begins in line], plan
