"""The audit and the administration in a real browser: filters, button, news, and nothing that the policy refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from approvals.audit import seal_verification
from checkpoints.actors import Actor
from checkpoints.models import Verification
from tests.checkpoints.audit.sealed_events import say, seal_all
from tests.factories import ann, decide, make_gate, make_team, make_user
from tests.harness.browser_checks import check_each_look, watched

NewPage = Callable[..., Page]
AUDITOR = ("checkpoints.view_audit", "checkpoints.erase_text")


@pytest.fixture(autouse=True)
def alone() -> None:
    Verification.objects.underway().delete()


def verify_all(asked: int) -> None:
    while seal_verification.go_on(asked):
        pass


def test_the_audit_has_no_fault_and_its_button_verifies_and_says_how_it_went_by_itself(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(team=team)
    decide(gate, ann(team), comment="She\u202e is <b>right</b>")
    say("words " * 200, team=team.pk)
    seal_all()
    verify_all(Verification.objects.ask(by=Actor("user:7", "Ann")).pk)
    page = new_page(make_user("Olga Auditor", team, may=AUDITOR))
    said = watched(page)
    page.goto("/audit/")
    for row in page.locator(".audit-row > details > summary").all():
        row.click()
    page.locator(".audit-more summary").click()
    assert check_each_look(page, "", said) == []
    page.get_by_role("button", name="Verify the seals").click()
    expect(page.locator("#seals")).to_contain_text("Verifying for Olga Auditor")
    verify_all(Verification.objects.underway().get().pk)
    expect(page.locator("#seals")).to_contain_text("by Olga Auditor")
    expect(page.locator("#seals")).to_contain_text("are as they were written")
