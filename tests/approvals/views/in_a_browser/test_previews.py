"""What an edit would do is drawn anew while it is typed, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.factories import ann, make_gate, make_team

NewPage = Callable[..., Page]


def test_typing_in_a_field_asks_the_server_what_that_edit_would_do(new_page: NewPage) -> None:
    """The fields stand outside the form's element: a listener on the form heard none of them."""
    team = make_team()
    gate = make_gate(team=team)
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    with page.expect_response(f"**/gates/{gate.pk}/impacts/") as answer:
        page.fill("[name='args.refund/amount']", "99.50")
    assert answer.value.status == 200
    assert "99.50" in str(answer.value.request.post_data)
    expect(page.locator("#edit-impact .impact:visible")).to_contain_text("If you approve with your edit")
    expect(page.locator("[name='args.refund/amount']")).to_be_focused()
