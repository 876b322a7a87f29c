"""Times are written in the reader's zone once their browser has said it, and say that they are UTC before."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect

from approvals.models import Gate
from approvals.presentation.drawing import times
from tests.factories import ann, make_gate, make_team
from tests.harness.browser_checks import watched
from tests.harness.signed_in_clients import signed_in

AT = dt.datetime(2026, 7, 1, 22, 30, 5, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("zone", "style", "words"),
    [
        (None, "clock", "22:30 UTC"),
        ("Asia/Kolkata", "clock", "2 Jul, 04:00"),
        ("Europe/Berlin", "second", "2 Jul, 00:30"),
        ("America/New_York", "second", "18:30:05"),
        ("America/New_York", "moment", "1 Jul, 18:30"),
        ("UTC", "moment", "1 Jul, 22:30 UTC"),
    ],
)
def test_a_moment_is_said_in_a_zone(zone: str | None, style: str, words: str) -> None:
    now = AT + dt.timedelta(minutes=5)
    with timezone.override(ZoneInfo(zone) if zone else None):
        # On the day in the reader's zone: where that is the next one already, "now" is moved back to say so.
        said = times.say(
            AT, style, now=now if zone in (None, "America/New_York", "UTC") else now - dt.timedelta(hours=20)
        )
    assert said == words


def test_a_cookie_that_names_no_zone_is_passed_over() -> None:
    gate = make_gate(team=(team := make_team()))
    reader = signed_in(ann(team))
    for junk in ("Mars/Olympus", "../../etc/passwd", "x" * 5000, ""):
        reader.cookies["hp-zone"] = junk
        assert re.search(r"\d\d:\d\d UTC</time>", reader.get(f"/gates/{gate.pk}/").content.decode())
    reader.cookies["hp-zone"] = "Asia/Kolkata"
    assert "UTC</time>" not in reader.get(f"/gates/{gate.pk}/").content.decode()


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


def test_a_zone_that_the_browser_does_not_know_is_utc(new_page: Callable[..., Page], web: str) -> None:
    gate = make_gate(team=(team := make_team()))
    page = new_page(ann(team))
    page.context.add_cookies([{"name": "hp-own-zone", "value": "Mars/Base", "url": web}])
    said = watched(page)
    page.goto(f"/gates/{gate.pk}/")
    expect(page.locator("time[data-as=clock]").first).to_have_text(re.compile(r"\d\d:\d\d UTC$"))
    assert said == []
