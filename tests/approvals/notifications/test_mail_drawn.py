"""Mails as strict mail clients draw them: nothing is loaded, and nothing is wider than the screen."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from approvals.notifications import delivering
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_team
from tests.harness.mail_client import drawn

from .mail_server import MailServer


@pytest.mark.long
def test_each_mail_fits_every_client_and_loads_nothing(mails: MailServer, browser: Browser, tmp_path: Path) -> None:
    team = make_team()
    reviewer = ann(team)
    policy = make_policy(team, name="default")
    policy.leaves = "all"
    policy.save(update_fields=["leaves"])
    title = f"Refund {'unbroken' * 12} to Marit"
    gate = make_gate(policy=policy, team=team, card=make_card(title=title, risk="critical"), started_by=bob(team))
    delivering.run_slice()
    decide(gate, by=reviewer)
    for _ in range(7):
        make_gate(policy=policy, team=team)
    delivering.run_slice()
    subjects = [str(each["Subject"]) for each in mails.mails]
    assert "7 gates wait for your decision" in subjects
    assert len(subjects) == 4, "asked, ended, and a list for each of two"

    def look(number: int, page: Page, width: int, scheme: str) -> None:
        page.screenshot(path=str(tmp_path / f"mail-{number}-{width}-{scheme}.png"), full_page=True)
        box = page.locator(".sheet").bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width, f"mail {number} is wider than {width}"

    for number, mail in enumerate(mails.mails):
        assert drawn(browser, mail, partial(look, number)) == []
