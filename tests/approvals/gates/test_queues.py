"""Queues, what stands beside a gate, and who is called to it: as the rules say it of one gate and one person."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib.auth.models import Group, User

from approvals.gates import mentions, remarks
from approvals.gates.lists.queue_filters import QueueFilters
from approvals.gates.lists.queues import ALL, DECIDED, MINE, MINE_DECIDED, ReaderReach
from approvals.gates.page import shown_gate
from approvals.gates.page.shown_gate import shown
from approvals.models import Gate, Policy
from approvals.policy import authority, enough_reviewers
from checkpoints.access.token_scope import TokenBounds
from checkpoints.models import Event, Plan
from checkpoints.values.canonical_json import decode_canonical
from tests.approvals.assignments.test_away import lend
from tests.factories import (
    ann,
    bob,
    decide,
    edit_amount,
    eve,
    make_action,
    make_card,
    make_gate,
    make_plan,
    make_policy,
    make_run,
    make_team,
    make_user,
)
from tests.harness.signed_in_clients import signed_in


def test_the_queues_hold_what_the_rules_of_one_gate_say() -> None:
    teams = [make_team(), make_team("Finance"), make_team("Ops")]
    people = [ann(teams[0]), bob(teams[1]), eve()]
    people[1].groups.add(teams[2])
    dice = random.Random(7)
    policies = [make_policy(teams[n % 3], name=f"p{n}", groups=(teams[dice.randrange(3)],) if n % 2 else (), quorum=2)
                for n in range(6)]  # fmt: skip
    for n in range(12):
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
        for gate in Gate.objects.order_by("-pk")[:20]:  # eight of them are of other tests
            page = shown_gate.shown(gate.pk, to=person)
            assert (page is not None) == (gate in visible), "one rule says who sees a gate, in lists and on its page"
            if page is not None and gate.status == "open":
                assert authority.reason(page.stands, page.gate) == authority.why_not(person, gate)
                (there,) = enough_reviewers.people(gate.policy.reviewers)
                assert page.deciders <= there
                assert len(page.deciders) == min(len(there), gate.policy.quorum + 1)
        counts, _ = reach.figures([(MINE, QueueFilters()), (ALL, QueueFilters())], agents_of=ALL)
        assert [each.number for each in counts.values()] == [len(mine), len(reach.ids(ALL, most=100))]


def test_a_token_of_one_team_shows_the_same_gates_in_lists_and_on_their_pages() -> None:
    """A list left out what its owner reviews for the team as a member of another, while the gate's page showed it."""
    team, finance = make_team(), make_team("Finance")
    lent, own = make_gate(policy=make_policy(team, groups=(finance,))), make_gate(team=finance)
    for bound, expected in ((team, {lent}), (finance, {own}), (None, {lent, own})):
        reader: Any = bob(finance)
        reader.bounds = TokenBounds(bound.pk if bound else None)
        assert set(Gate.objects.visible_to(reader)) == expected
        assert {gate for gate in (lent, own) if shown_gate.shown(gate.pk, to=reader)} == expected
        assert set(ReaderReach.of(reader).ids(ALL, most=100)) == {gate.pk for gate in expected}


@pytest.fixture
def team() -> Group:
    return make_team()


def opened(policy: Policy, **card: Any) -> Gate:
    """Open a gate of a run of the policy's team; all of them are of one agent."""
    run = make_run(team=policy.team, plan=Plan.objects.filter(runs__team=policy.team).first() or make_plan())
    return make_gate(run=run, policy=policy, card=make_card(**card))


def beside(gate: Gate) -> list[tuple[int, bool]]:
    """The (number, whether it asks for the same) of the open gates that the page shows beside this one."""
    found = shown(gate.pk, to=ann(gate.team))
    assert found is not None
    return [(each.id, each.same) for each in (*found.the_same, *found.about_the_same)]


def test_gates_with_the_same_actions_are_found_oldest_first_and_none_of_another_team(team: Group) -> None:
    policy = make_policy(team)
    one, two, three = (opened(policy) for _ in range(3))
    opened(make_policy(make_team()))
    assert beside(two) == [(one.pk, True), (three.pk, True)]
    decide(one, ann(team))
    assert beside(two) == [(three.pk, True)]
    assert shown(two.pk, to=eve()) is None


def test_one_that_was_edited_is_a_conflict_where_both_are_about_one_resource(team: Group) -> None:
    """The edit took it out of those that ask for the same, and it was in no list: nobody saw the other one."""
    policy = make_policy(team, quorum=2)
    one, two = (opened(policy, resource="order 7") for _ in range(2))
    decide(one, ann(team), "edit", arguments=edit_amount(one, "80.00"))
    assert beside(two) == [(one.pk, False)]
    assert beside(one) == [(two.pk, False)]


def test_another_tool_on_the_same_resource_is_a_conflict(team: Group) -> None:
    policy = make_policy(team)
    one = opened(policy, resource="order 7")
    cancel = replace(make_action(), tool="orders.cancel")
    two = opened(policy, resource="order 7", actions=[cancel])
    opened(policy, resource="order 8", actions=[cancel])
    assert beside(one) == [(two.pk, False)]
    page = signed_in(ann(team)).get(f"/gates/{two.pk}/").content.decode()
    assert "1 more request for" in page
    assert "before this one" in page


def test_the_same_are_decided_once_from_the_page_of_one_unless_the_policy_decides_each_by_itself(team: Group) -> None:
    policy = make_policy(team)
    one, two = (opened(policy, risk="low") for _ in range(2))
    reader = signed_in(ann(team))
    page = BeautifulSoup(reader.get(f"/gates/{one.pk}/").content.decode(), "html.parser")
    form = page.select_one("#same form")
    assert form is not None
    assert "Decide once for these 2" in form.text
    sent = [str(each["value"]) for each in form.select("[name=gate]")]
    assert sent == [str(one.pk), str(two.pk)]
    preview = reader.post(str(form["action"]), {"gate": sent}).content.decode()
    assert len(BeautifulSoup(preview, "html.parser").select("[name=choice]")) == 2
    other = make_policy(make_team())
    one, _ = (opened(other, risk="high") for _ in range(2))
    page = BeautifulSoup(signed_in(ann(other.team)).get(f"/gates/{one.pk}/").content.decode(), "html.parser")
    assert page.select_one("#same form") is None
    assert "The risk is high; the policy allows at most low for decisions together." in page.select_one("#same").text  # type: ignore[union-attr]


@pytest.fixture
def gate() -> Gate:
    """A gate of Support that Finance reviews."""
    team, finance = make_team(), make_team("Finance")
    made = make_gate(policy=make_policy(team, groups=(team, finance)))
    made.finance = finance  # type: ignore[attr-defined]
    return made


def test_only_those_who_may_see_the_gate_are_mentioned(gate: Gate) -> None:
    mine, mate, outsider = ann(gate.team), bob(gate.team), eve()
    reviewer = make_user("Mira", gate.finance, may=("approvals.decide_gate",))  # type: ignore[attr-defined]
    others = f"@{outsider.username} @nobody x@{mate.username} @{mine.username}"
    remarks.remark(gate, by=mine, text=f"Hello {others}", key="k1")
    for _ in range(2):  # the same form twice
        remarks.remark(gate, by=mine, text=f"(@{mate.username.upper()}), @{reviewer.username}: {others}.", key="k2")
    mate.is_active = False
    mate.save()
    remarks.remark(gate, by=mine, text=f"@{mate.username}", key="k3")
    told = Event.objects.get(subject=gate.subject, kind="gate.mentioned")
    assert decode_canonical(bytes(told.data))["users"] == sorted([mate.pk, reviewer.pk])


def test_completion_offers_the_same_people_and_an_outsider_gets_none(gate: Gate) -> None:
    mine, mate, outsider = ann(gate.team), bob(gate.team), eve()
    browser = signed_in(mine)
    assert f'data-name="{mate.username}"' in browser.get(f"/gates/{gate.pk}/people/", {"q": "b"}).content.decode()
    everybody = browser.get(f"/gates/{gate.pk}/people/").content.decode()
    assert [each.username in everybody for each in (mate, mine, outsider)] == [True, False, False]
    assert signed_in(outsider).get(f"/gates/{gate.pk}/people/").status_code == 404
    assert browser.get(f"/gates/{gate.pk}/people/", {"q": "%_"}).status_code == 200


def test_people_whom_the_policy_names_and_who_stands_in_are_mentioned_too() -> None:
    """They decide the gate, and could not be called to it."""
    team, named, gone, other = make_team(), make_user("Nora Named"), make_user("Nora Off"), make_user("Noah Elsewhere")
    one = ann(team)
    lend(one, other)
    gate = make_gate(policy=make_policy(team, groups=(team,), people=(named, gone)))
    User.objects.filter(pk=gone.pk).update(is_active=False)
    assert mentions.offered(gate, "no", to=one) == [other, named]
    words = " ".join(f"@{each.username}" for each in (named, gone, other, make_user("Eve Marlow")))
    assert set(mentions.tell(gate, words, by=one)) == {named.pk, other.pk}
