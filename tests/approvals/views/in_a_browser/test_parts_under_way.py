"""What is taken out of a form, or put into it, is part of what is sent, however slowly the server draws it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agents.runs.start import start_run
from approvals.models import Decision, Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.conftest import SharedWeb
from tests.factories import ann, make_team
from tests.factories.driven_runs import advance_to_rest, state
from tests.harness.browser_checks import is_live
from tests.harness.known_agents import knowing_only
from tests.harness.slow_parts import SlowParts

AGENTS = "tests.approvals.views.in_a_browser.mailing_agent"
NewPage = Callable[..., Page]


@pytest.fixture
def web(shared_web: SharedWeb, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The base URL of a web server that knows this agent."""
    with knowing_only(AGENTS, settings, monkeypatch):
        yield shared_web()


@pytest.fixture
def asked(web: str) -> Gate:
    """A gate about one mail to a, b and c."""
    mail = {"to": ["a@x.org", "b@x.org", "c@x.org"]}
    run = start_run("mailing", input={"mail": mail}, team=make_team(), by=SYSTEM)
    return Gate.objects.open().get(run=advance_to_rest(run))


@pytest.fixture
def page(asked: Gate, new_page: NewPage) -> Page:
    """That gate's page, as Ann sees it."""
    page = new_page(ann(asked.run.team))
    page.goto(f"/gates/{asked.pk}/")
    is_live(page)
    return page


@pytest.fixture
def slow(page: Page) -> SlowParts:
    return SlowParts(page)


def take_out(page: Page, item: int) -> None:
    page.locator(f'[data-change][value="args.send/to/{item}:remove"]').click()


def sent_to(run: Run) -> Any:
    """Return whom the mail went to."""
    return state(advance_to_rest(run))["sent"]


def test_a_decision_waits_for_the_items_that_are_being_taken_out(asked: Gate, page: Page, slow: SlowParts) -> None:
    """Taken out, then approved before the server had answered: the mail went to the one who was taken out, too.

    The answer to the second was drawn into what the answer to the first had replaced: b stayed.
    """
    take_out(page, 0)
    take_out(page, 1)
    page.locator("label[data-choice=approve]").click()
    page.locator("[data-commit]:visible").click()
    expect(page.locator("[data-commit][aria-busy]")).to_have_count(1)
    assert not Decision.objects.filter(gate=asked).exists()
    slow.go_on()
    expect(page.locator("#gate-news")).to_have_attribute("data-status", "decided")
    assert sent_to(asked.run) == ["c@x.org"]


def test_where_the_server_does_not_draw_the_part_nothing_is_decided(asked: Gate, page: Page, slow: SlowParts) -> None:
    take_out(page, 0)
    page.locator("label[data-choice=approve]").click()
    page.locator("[data-commit]:visible").click()
    slow.go_on(cut_off=True)  # the change alone is sent then, as without a script
    expect(page.locator(".row-gone li")).to_have_count(1)
    assert not Decision.objects.filter(gate=asked).exists()
