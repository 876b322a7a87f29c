"""Open gates beside one another: those that ask for exactly the same, and those about one resource."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib.auth.models import Group

from approvals.gates.page.shown_gate import shown
from approvals.models import Gate, Policy
from checkpoints.models import Plan
from tests.factories import (
    ann,
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
)
from tests.harness.signed_in_clients import signed_in


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
    return [(each.id, each.same) for each in found.beside]


def test_gates_with_the_same_actions_are_found_oldest_first(team: Group) -> None:
    policy = make_policy(team)
    one, two, three = (opened(policy) for _ in range(3))
    assert beside(two) == [(one.pk, True), (three.pk, True)]
    decide(one, ann(team))
    assert beside(two) == [(three.pk, True)]


def test_one_that_was_edited_asks_for_something_else(team: Group) -> None:
    policy = make_policy(team, quorum=2)
    one, two = (opened(policy) for _ in range(2))
    decide(one, ann(team), "edit", arguments=edit_amount(one, "80.00"))
    assert beside(two) == []


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


def test_another_teams_gates_are_not_shown(team: Group) -> None:
    one = opened(make_policy(team), resource="order 7")
    other = make_team()
    opened(make_policy(other), resource="order 7")
    assert beside(one) == []
    assert shown(one.pk, to=eve()) is None


def test_gates_without_actions_or_resource_are_beside_none(team: Group) -> None:
    policy = make_policy(team)
    one, _ = (opened(policy, actions=[]) for _ in range(2))
    assert beside(one) == []


def test_the_same_are_decided_once_from_the_page_of_one(team: Group) -> None:
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


def test_where_the_policy_decides_each_by_itself_the_page_says_why_and_offers_no_list(team: Group) -> None:
    """The button led to a list of which nothing could be decided."""
    policy = make_policy(team)
    one, _ = (opened(policy, risk="high") for _ in range(2))
    page = BeautifulSoup(signed_in(ann(team)).get(f"/gates/{one.pk}/").content.decode(), "html.parser")
    assert page.select_one("#same form") is None
    assert "The risk is high; the policy allows at most low for decisions together." in page.select_one("#same").text  # type: ignore[union-attr]
