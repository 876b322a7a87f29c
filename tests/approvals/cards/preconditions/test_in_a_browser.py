"""The tick box in a real browser, with and without script, and the gate that is open again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from approvals.models import Gate, Outcome
from tests.factories import ann, bob, decide, make_policy, make_team
from tests.harness.browser_checks import check_each_look, is_live, watched
from tests.harness.examples import first_alone

from .offering_gates import make_observing_gate, make_precondition

NewPage = Callable[..., Page]
BALANCE = make_precondition(preselected=True, effects=["pay"], label="nothing else was refunded, so still {value}")
MOOD = make_precondition(
    "mood", observes="mood", value={"shop": "calm", "since": [1, 2.0]}, label="it is still {value}"
)
WORLD = {"of": "world", "pointer": "/balance", "kind": "changed", "before": "0.00 EUR", "after": "12.00 EUR"}


def counted(gate: Gate) -> list[str]:
    return Outcome.objects.get(gate=gate).counted


@pytest.mark.parametrize("script", first_alone([True, False]))
def test_a_box_is_ticked_by_its_words_and_the_approval_takes_it(new_page: NewPage, script: bool) -> None:
    gate = make_observing_gate(BALANCE, MOOD)
    page = new_page(ann(gate.team), java_script_enabled=script)
    page.goto(f"/gates/{gate.pk}/")
    group = page.get_by_role("group", name="Safety checks")
    expect(group.get_by_label("nothing else was refunded")).to_be_checked()
    group.get_by_text("it is still").click()
    group.get_by_text("nothing else was refunded").click()
    page.locator("label[data-choice=approve]").click()
    page.get_by_role("button", name="Approve: pay €120.00").click()
    expect(page.locator("#gate-news")).to_contain_text("Approved by Ann Okafor")
    assert counted(gate) == ["mood"]


def test_the_group_goes_with_a_rejection_and_stays_with_a_value_put_in_its_place(new_page: NewPage) -> None:
    gate = make_observing_gate(BALANCE, MOOD)
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    group = page.get_by_role("group", name="Safety checks")
    expect(group).to_be_visible()
    page.locator("label[data-choice=reject]").click()
    expect(group).to_be_hidden()
    page.get_by_label("Enter the result yourself").check()
    expect(group).to_be_visible()
    page.locator("label[data-choice=edit]").click()
    expect(group).to_be_visible()


@pytest.mark.long
def test_decided_by_somebody_else_the_boxes_can_no_longer_be_set(new_page: NewPage) -> None:
    gate = make_observing_gate(BALANCE, MOOD)
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    expect(page.locator("hp-live")).to_have_attribute("data-live", "on")
    page.fill("[name='args.refund/amount']", "99.5")
    decide(gate, bob(gate.team))
    expect(page.locator("#gate-news")).to_contain_text("Approved by Bob Lindqvist")
    expect(page.get_by_role("group", name="Safety checks")).to_be_hidden()
    expect(page.locator("[name='only_if.balance']")).to_be_disabled()


@pytest.mark.long
def test_the_ticks_of_a_half_typed_answer_outlive_the_page_and_what_others_do(new_page: NewPage) -> None:
    gate = make_observing_gate(BALANCE, MOOD, policy=make_policy(make_team(), quorum=2))
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    balance, mood = page.locator("[name='only_if.balance']"), page.locator("[name='only_if.mood']")
    balance.uncheck()
    mood.check()
    expect(page.locator("[data-draft-note]")).to_contain_text("Draft saved")
    decide(gate, bob(gate.team))
    expect(page.locator("#gate-agreement")).to_contain_text("Bob Lindqvist")
    for _ in ("as it was left", "as it was put back"):
        expect(balance).not_to_be_checked()
        expect(mood).to_be_checked()
        page.reload()
    expect(page.locator("[data-draft-note]")).to_contain_text("restored")
    expect(page.locator("[name=verdict]:checked")).to_have_count(0)
    balance.check()
    mood.uncheck()
    expect(page.locator("[data-draft-note]")).to_be_hidden()
    page.reload()
    expect(balance).to_be_checked()
    expect(mood).not_to_be_checked()


@pytest.mark.examples
def test_the_group_and_the_worlds_difference_have_no_fault_that_axe_can_find(new_page: NewPage) -> None:
    gate = make_observing_gate(BALANCE, MOOD, reopened={"gate": 1, "changes": [WORLD]})
    closed = make_observing_gate(BALANCE, MOOD, policy=None)
    decide(closed, ann(closed.team), preconditions=["mood"])
    for each in (gate, closed):
        page = new_page(bob(each.team))
        said = watched(page)
        assert check_each_look(page, f"/gates/{each.pk}/", said) == []
