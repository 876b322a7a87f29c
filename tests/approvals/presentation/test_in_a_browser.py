"""What scripts write into a page beside what the server wrote: times in a zone, and what was changed below."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from playwright.sync_api import BrowserContext, Page, expect

from approvals.models import Gate
from tests.approvals.views.test_files import plan
from tests.factories import ann, make_action, make_card, make_gate, make_run, make_state, make_team


def test_the_frame_of_a_pinned_list_says_when_it_was_changed_below(new_page: Callable[..., Page]) -> None:
    """It went on showing what was proposed while other values stood in the form."""
    team = make_team()
    edited = plan(to={"type": "array", "items": {"type": "string"}})
    run = make_run(team=team, plan=edited, state=make_state(order={"to": ["a@example.org", "b@example.org"]}))
    action = make_action(id="refund", pointer="/order", pinned=["/to"], tool="mail.send", edits=True)
    gate = make_gate(run=run, team=team, card=make_card(actions=[action]))
    page = new_page(ann(team))
    page.goto(f"/gates/{gate.pk}/")
    said = page.locator("[data-pin-parts]")
    expect(said).to_be_hidden()
    page.fill('[name="args.refund/to/0"]', "c@example.org")
    expect(said).to_be_visible()
    page.click("[data-put-back]:visible")
    expect(said).to_be_hidden()
    page.locator('[data-change][value*="remove"]').first.click()
    expect(said).to_be_visible()


def test_what_the_server_writes_is_what_the_browser_keeps(new_context: Callable[..., BrowserContext], web: str) -> None:
    gate = make_gate(team=(team := make_team()))
    Gate.objects.filter(pk=gate.pk).update(opened_at=gate.opened_at - dt.timedelta(days=40))
    reader = ann(team)
    with_script = new_context(reader, timezone_id="Asia/Kolkata")
    page = with_script.new_page()
    page.goto(f"/gates/{gate.pk}/")
    times_seen = page.locator("time[data-as]:not([data-as=ago], [data-as=until])")
    expect(times_seen.first).not_to_contain_text("UTC")
    shown = times_seen.all_inner_texts()
    zone = next(each for each in with_script.cookies() if each["name"] == "hp-zone")
    assert zone["value"] == "Asia/Calcutta" or zone["value"] == "Asia/Kolkata"
    plain = new_context(reader, java_script_enabled=False)
    plain.add_cookies([{"name": "hp-zone", "value": zone["value"], "url": web}])
    page = plain.new_page()
    page.goto(f"/gates/{gate.pk}/")
    assert page.locator("time[data-as]:not([data-as=ago], [data-as=until])").all_inner_texts() == shown
