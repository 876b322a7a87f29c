"""A person decides in a browser, a worker and a sweeper carry it out, and the run's page says so by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.conftest import SharedWeb
from tests.factories import ann, bob, make_team
from tests.harness.browser_checks import is_live, watched
from tests.harness.known_agents import knowing_only
from tests.harness.waiting import until

AGENTS = "tests.approvals.views.in_a_browser.courier_agent"
BY_NOW = 30_000  # milliseconds: what a worker does at once, on a machine that is busy


@pytest.fixture(autouse=True)
def courier(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know this agent and no other, here and in the processes started from here."""
    with knowing_only(AGENTS, settings, monkeypatch):
        yield


@pytest.fixture
def web(shared_web: SharedWeb, courier: None) -> str:
    """The base URL of a web server that knows this agent."""
    return shared_web()


def asked(run: Run, step: str) -> Gate:
    """Return the gate at which the run waits, once it does."""
    return until(Gate.objects.open().filter(run=run, step=step).first, what=f"{run} asks at {step}") or Gate()


def committed(page: Page, said: str) -> None:
    """Send the decision by the key that is shown for it."""
    page.keyboard.press("Control+Enter")
    expect(page.locator("#decide, #gate-news").filter(has_text=said).first).to_be_visible()


def test_what_a_person_approves_edits_and_rejects_is_carried_out_and_shown_without_loading_again(
    new_page: Callable[..., Page],
    celery_worker: Callable[..., object],
    sweeper: Callable[..., object],
    tmp_path: Path,
) -> None:
    """Each half was shown by itself: a page whose runs a test moved, and workers whose gates a test decided."""
    from agents.runs.start import start_run

    celery_worker("-c", "1")
    sweeper()
    ledger, team = tmp_path / "ledger", make_team()
    ledger.touch()
    run = start_run("courier", {"ledger": str(ledger)}, by=SYSTEM, team=team)
    person = ann(team)
    watching = new_page(person)
    complaints = watched(watching)
    watching.goto(f"/runs/{run.pk}/")
    is_live(watching)
    watching.evaluate("window.stays = true")
    head = watching.locator("#run-head")
    expect(head).to_contain_text("Held at “Review the letter”", timeout=BY_NOW)

    page = watching.context.new_page()
    page.goto(f"/gates/{asked(run, 'review').pk}/")
    page.keyboard.press("a")
    committed(page, "Approved by Ann Okafor")
    expect(head).to_contain_text("Held at “Review the bill”", timeout=BY_NOW)
    assert ledger.read_text().splitlines() == ["sent Good morning"]

    page.goto(f"/gates/{asked(run, 'price').pk}/")
    page.fill("[name='args.charge/amount']", "9.50")
    expect(page.locator("[name=verdict][value=edit]")).to_be_checked()
    committed(page, "Ann Okafor")
    expect(head).to_contain_text("Held at “Review the copy”", timeout=BY_NOW)
    assert ledger.read_text().splitlines()[1:] == ["billed 9.50", "closed"]

    page = new_page(bob(team))  # since what Ann edited came into what this asks about
    page.goto(f"/gates/{asked(run, 'keep').pk}/")
    page.keyboard.press("r")
    page.keyboard.type("The copy is kept.")
    page.locator("[name=then][value=stop]").check()
    committed(page, "Rejected by Bob")
    expect(head).to_contain_text("Cancelled", timeout=BY_NOW)
    expect(head).to_contain_text("The copy is kept.", timeout=BY_NOW)
    assert watching.evaluate("window.stays") is True, "the run's page was loaded anew"
    run.refresh_from_db()
    assert (run.status, "shredded" in ledger.read_text()) == ("cancelled", False)
    assert complaints == []
