"""A person decides in a browser, a worker and a sweeper carry it out, and the run's page says so by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agents.runs.start import start_run
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.conftest import SharedWeb
from tests.factories import ann, make_policy, make_team
from tests.harness.browser_checks import is_live, watched
from tests.harness.known_agents import AGENTS, knowing_only
from tests.harness.waiting import until

BY_NOW = 30_000  # milliseconds: what a worker does at once, on a machine that is busy


@pytest.fixture
def web(shared_web: SharedWeb, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The base URL of a web server that knows this agent, as do the processes started from here."""
    with knowing_only(AGENTS, settings, monkeypatch):
        yield shared_web()


def asked(run: Run, number: int) -> Gate:
    """Return the gate at which the run waits, once it has asked so often."""
    gates = Gate.objects.filter(run=run).order_by("pk")
    until(lambda: len(gates.all()) == number and gates.latest("pk").status == "open", what=f"{run} asks")
    return gates.latest("pk")


def test_what_a_person_rejects_and_edits_is_carried_out_and_shown_without_loading_again(
    new_page: Callable[..., Page], celery_worker: Callable[..., object], sweeper: Callable[..., object], tmp_path: Path
) -> None:
    """Each half was shown by itself: a page whose runs a test moved, and workers whose gates a test decided."""
    celery_worker("-c", "1")
    sweeper()
    ledger, team = tmp_path / "ledger", make_team()
    ledger.touch()
    make_policy(team, name="payments")
    run = start_run("payer", {"ledger": str(ledger)}, by=SYSTEM, team=team)
    person = ann(team)
    watching = new_page(person)
    complaints = watched(watching)
    watching.goto(f"/runs/{run.pk}/")
    is_live(watching)
    watching.evaluate("window.stays = true")
    head = watching.locator("#run-head")
    expect(head).to_contain_text("Held at “Review”", timeout=BY_NOW)

    page = watching.context.new_page()
    page.goto(f"/gates/{asked(run, 1).pk}/")
    expect(page.locator("h1")).to_contain_text("Pay 10.00 to ann")
    page.keyboard.press("r")
    page.keyboard.type("One less.")
    with page.expect_event("load"):  # a live update says it before
        page.keyboard.press("Control+Enter")
    expect(page.locator("#gate-news")).to_contain_text("Rejected by Ann Okafor")
    page.goto(f"/gates/{asked(run, 2).pk}/")
    expect(page.locator("h1")).to_contain_text("Pay 9.00 to ann")
    assert ledger.read_text() == ""
    page.fill("[name='args.pay/amount']", "7.50")
    expect(page.locator("[name=verdict][value=edit]")).to_be_checked()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#gate-news")).to_contain_text("Ann Okafor")

    expect(head).to_contain_text("Completed", timeout=BY_NOW)
    assert watching.evaluate("window.stays") is True, "the run's page was loaded anew"
    [pay, mail] = (line.split() for line in ledger.read_text().splitlines())
    assert ((pay[0], pay[-1]), (mail[0], mail[-1])) == (("pay", "7.50"), ("mail", "7.50"))
    assert complaints == []
