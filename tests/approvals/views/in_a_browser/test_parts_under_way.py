"""What is taken out of a form, or put into it, is part of what is sent, however slowly the server draws it."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from approvals.models import Decision
from tests.approvals.views.test_files import RECIPIENTS, with_order
from tests.factories import ann
from tests.harness.browser_checks import is_live
from tests.harness.slow_parts import SlowParts


def test_a_decision_waits_for_the_items_that_are_being_taken_out(new_page: Callable[..., Page]) -> None:
    """Taken out, then approved before the server had answered: the mail went to the one who was taken out, too.

    The answer to the second was drawn into what the answer to the first had replaced: c stayed. Where the server does
    not draw the part, nothing is decided.
    """
    gate = with_order({"to": ["a@x.org", "b@x.org", "c@x.org", "d@x.org"]}, to=RECIPIENTS)
    page = new_page(ann(gate.team))

    def approve_without(*items: int) -> SlowParts:
        is_live(page)
        slow = SlowParts(page)
        for item in items:
            page.locator(f'[data-change][value="args.refund/to/{item}:remove"]').click()
        page.locator("label[data-choice=approve]").click()
        page.locator("[data-commit]:visible").click()
        return slow

    page.goto(f"/gates/{gate.pk}/")
    approve_without(0).go_on(cut_off=True)  # the change alone is sent then, as without a script
    expect(page.locator(".row-gone li")).to_have_count(1)
    slow = approve_without(1, 2)
    expect(page.locator("[data-commit][aria-busy]")).to_have_count(1)
    assert not Decision.objects.filter(gate=gate).exists()
    with page.expect_request("**/decisions/") as sent:
        slow.go_on()
    assert 'name="args.refund!order/to"\r\n\r\n/3\r\n' in (sent.value.post_data or "")
