"""What scripts write into a page beside what the server wrote: times in a zone, and what was changed below."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from playwright.sync_api import BrowserContext, expect

from approvals.models import Gate
from tests.approvals.views.test_files import RECIPIENTS, with_order
from tests.factories import ann

TIMES = "time[data-as]:not([data-as=ago], [data-as=until])"


def test_times_are_those_the_server_writes_and_the_frame_of_a_pinned_list_says_when_it_was_changed_below(
    new_context: Callable[..., BrowserContext], web: str
) -> None:
    """The frame went on showing what was proposed while other values stood in the form."""
    gate = with_order({"to": ["a@example.org", "b@example.org"]}, pinned=["/to"], to=RECIPIENTS)
    Gate.objects.filter(pk=gate.pk).update(opened_at=gate.opened_at - dt.timedelta(days=40))
    reader = ann(gate.team)
    with_script = new_context(reader, timezone_id="Asia/Kolkata")
    page = with_script.new_page()
    page.goto(f"/gates/{gate.pk}/")
    expect(page.locator(TIMES).first).not_to_contain_text("UTC")
    shown = page.locator(TIMES).all_inner_texts()
    [zone] = [each["value"] for each in with_script.cookies() if each["name"] == "hp-zone"]
    assert zone in ("Asia/Calcutta", "Asia/Kolkata")
    plain = new_context(reader, java_script_enabled=False)
    plain.add_cookies([{"name": "hp-zone", "value": zone, "url": web}])
    unscripted = plain.new_page()  # before anything is typed, which keeps a draft with its time
    unscripted.goto(f"/gates/{gate.pk}/")
    assert unscripted.locator(TIMES).all_inner_texts() == shown

    said = page.locator("[data-pin-parts]")
    expect(said).to_be_hidden()
    page.fill('[name="args.refund/to/0"]', "c@example.org")
    expect(said).to_be_visible()
    page.click("[data-put-back]:visible")
    expect(said).to_be_hidden()
    page.locator('[data-change][value*="remove"]').first.click()
    expect(said).to_be_visible()
