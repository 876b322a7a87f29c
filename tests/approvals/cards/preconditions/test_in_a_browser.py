"""The tick box of a safety check in a real browser."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from approvals.models import Outcome
from tests.approvals.cards.preconditions.offering_gates import make_observing_gate, make_precondition
from tests.factories import ann


def test_the_group_goes_with_a_rejection_and_its_ticks_are_taken_by_the_approval(new_page: Callable[..., Page]) -> None:
    balance = make_precondition(preselected=True, effects=["pay"], label="nothing else was refunded, so still {value}")
    gate = make_observing_gate(balance, make_precondition("mood", observes="mood", label="it is still {value}"))
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    group = page.get_by_role("group", name="Safety checks")
    page.locator("label[data-choice=reject]").click()
    expect(group).to_be_hidden()
    page.get_by_label("Enter the result yourself").check()
    expect(group).to_be_visible()
    page.locator("label[data-choice=edit]").click()
    expect(group.get_by_label("nothing else was refunded")).to_be_checked()
    group.get_by_text("it is still").click()
    group.get_by_text("nothing else was refunded").click()
    page.locator("label[data-choice=approve]").click()
    page.get_by_role("button", name="Approve: pay €120.00").click()
    expect(page.locator("#gate-news")).to_contain_text("Approved by Ann Okafor")
    assert Outcome.objects.get(gate=gate).counted == ["mood"]
