"""Five people at one run, each in a browser of their own, with real workers: two of three, and all that can intervene.

The clock alone is not waited for: what falls due later is made due, and a real sweeper acts on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from django.utils import timezone
from playwright.sync_api import Page, expect

from approvals.gates.closing import pass_deadline
from approvals.models import Escalation, Gate, Policy
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.conftest import SharedWeb
from tests.factories import ann, bob, make_policy, make_team, make_user, mira
from tests.harness.browser_checks import is_live, watched
from tests.harness.known_agents import knowing_only
from tests.harness.waiting import until

AGENTS = "tests.approvals.views.in_a_browser.treasury_agent"
BY_NOW = 30_000  # milliseconds: what a worker does at once, on a machine that is busy
NewPage = Callable[..., Page]


@pytest.fixture(autouse=True)
def treasury(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know this agent and no other, here and in the processes started from here."""
    with knowing_only(AGENTS, settings, monkeypatch):
        yield


@pytest.fixture
def web(shared_web: SharedWeb, treasury: None) -> str:
    """The base URL of a web server that knows this agent."""
    return shared_web()


def asked(run: Run, step: str) -> Gate:
    """Return the gate at which the run waits, once it does."""
    return until(Gate.objects.open().filter(run=run, step=step).first, what=f"{run} asks at {step}") or Gate()


def opened(page: Page, gate: Gate) -> Page:
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    return page


def decided(page: Page, choice: str, said: str) -> None:
    page.locator(f"#decide label[data-choice={choice}]").click()
    if choice == "reject":
        page.locator("#feedback").fill("The printer was late.")
        page.locator("[name=then][value=stop]").check()
    page.locator("[data-commit]:visible").click()
    expect(page.locator("#gate-news")).to_contain_text(said)


@pytest.mark.long
def test_two_of_three_with_a_denial_an_escalation_a_delegation_a_takeover_and_an_expiry(
    new_page: NewPage, celery_worker: Callable[..., object], sweeper: Callable[..., object], tmp_path: Path
) -> None:
    """Bob loses his claim, Ann denies, Omar approves for Mira, and Dora for the next group; nobody answers the rest."""
    from agents.runs.start import start_run

    celery_worker("-c", "1")
    sweeper()
    team, directors, floor = make_team(), make_team("Directors"), make_team("Floor", may=())
    ledger = tmp_path / "ledger"
    ledger.touch()
    people = ann(team), bob(team), mira(team, floor), make_user("Omar Haddad", floor), make_user("Dora Lind", directors)
    policy = make_policy(team, name="payments", quorum=2, denials=2)
    later = [{"team": directors.pk, "after": 3600, "extend": None}]
    Policy.objects.filter(pk=policy.pk).update(escalation=later)
    make_policy(team, name="notes", deadline=timedelta(hours=1))
    run = start_run("treasury", {"ledger": str(ledger)}, by=SYSTEM, team=team)
    pages = [new_page(person) for person in people]
    complaints = [watched(page) for page in pages]
    of_ann, of_bob, of_mira, of_omar, of_dora = pages
    gate = asked(run, "ask_to_pay")

    of_mira.goto("/account/away/")
    of_mira.get_by_label("From").fill(f"{timezone.localtime():%Y-%m-%dT00:00}")
    of_mira.get_by_label("Who decides for you").select_option(label="Omar Haddad")
    of_mira.get_by_role("button", name="Plan", exact=True).click()
    expect(of_mira.locator("main")).to_contain_text("Omar Haddad decides for you")

    opened(of_ann, gate)
    opened(of_bob, gate).get_by_role("button", name="I am on it").click()
    expect(of_ann.locator("#gate-claim")).to_contain_text("Bob Lindqvist has this")
    of_ann.get_by_text("Take over…").click()
    of_ann.get_by_role("button", name="Take over from Bob Lindqvist").click()
    expect(of_ann.locator("#gate-claim")).to_contain_text("You have this")
    expect(of_bob.locator("#gate-claim")).to_contain_text("Ann Okafor has this")

    decided(of_ann, "reject", "Rejected by you")
    expect(of_bob.locator("#gate-agreement")).to_contain_text("1 of 2 rejections")
    expect(opened(of_omar, gate).locator("#gate-desk")).to_contain_text("You decide here for Mira Sandoval")
    decided(of_omar, "approve", "Approved by you")
    assert (asked(run, "ask_to_pay"), ledger.read_text()) == (gate, "")

    of_dora.goto("/")
    is_live(of_dora)
    expect(of_dora.locator(f"#gate-{gate.pk}")).to_have_count(0)
    Escalation.objects.filter(gate=gate).update(due_at=Now() - timedelta(seconds=1))
    expect(of_dora.locator(f"#gate-{gate.pk}")).to_contain_text("Pay the printer", timeout=BY_NOW)
    expect(of_bob.locator("#gate-desk")).to_contain_text("decides here, too", timeout=BY_NOW)
    decided(opened(of_dora, gate), "approve", "Approved by")
    until(lambda: ledger.read_text().splitlines() == ["paid €12.00 to the printer"], what="it is paid once")

    offer = asked(run, "ask_to_announce")
    opened(of_bob, offer)
    pass_deadline(offer)
    expect(of_bob.locator("main")).to_contain_text("Nobody answered in time, so nothing runs.", timeout=BY_NOW)
    until(lambda: Run.objects.get(pk=run.pk).status == "completed", what="the agent goes on")
    assert ledger.read_text().splitlines()[1:] == ["read expired"], "it announced nothing, and read why"
    assert Gate.objects.get(pk=offer.pk).status == "expired"
    assert complaints == [[]] * 5
