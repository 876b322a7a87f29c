"""The model's words appear on the run's page while it speaks, in a real browser, and go when its turn is saved."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agents.models import Spoken
from agents.moves.cancel import cancel
from checkpoints.models import Checkpoint, Run
from tests.factories import bob, eve, make_team
from tests.factories.driven_runs import state
from tests.harness import services
from tests.harness.browser_checks import check, is_live, watched
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import until

from .assistant_runs import start
from .endpoint import KEY, Endpoint, Reply

WORDS = "<b>First</b> I look at the desk. Then I write all of it down. And this comes last."
Worker = Callable[..., services.Service]


@pytest.fixture
def unsaid() -> Iterator[threading.Event]:
    """The model stops before its last words until this is set."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def worker(celery_worker: Worker, endpoint: Endpoint, folder: Path) -> services.Service:
    """Its only process is for the run of the test: what others left queued it would take first, and be held by."""
    for run in Run.objects.filter(plan__agent="assistant", status__in=Run.LIVE):
        cancel(run, by=bob(run.team), reason="Nobody waits for it.")
    wishes = {"HOLDPOINT_AGENTS": "agents.examples.assistant", "OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": KEY,
              "HOLDPOINT_ASSISTANT_FOLDER": str(folder)}  # fmt: skip
    return celery_worker("-c", "1", env=wishes)


@pytest.mark.usefixtures("worker")
def test_words_appear_while_the_model_speaks_and_are_gone_when_they_are_saved(
    new_page: Callable[..., Page], endpoint: Endpoint, unsaid: threading.Event
) -> None:
    team = make_team()
    page = new_page(bob(team), viewport={"width": 390, "height": 800})
    said = watched(page)
    run = start(endpoint, Reply(WORDS, held=unsaid, slow=0.2), team=team)
    page.goto(f"/runs/{run.pk}/")
    is_live(page)
    spoken = page.locator("#spoken")
    expect(spoken).to_contain_text("<b>First</b> I")
    expect(spoken).to_contain_text("not saved yet")
    assert Checkpoint.objects.filter(run=run, step="think").count() == 0
    assert check(page, "", said) == []
    without = new_page(bob(team), java_script_enabled=False)
    without.goto(f"/runs/{run.pk}/")
    expect(without.locator("#spoken")).to_contain_text("<b>First</b> I")
    unsaid.set()
    expect(spoken).to_contain_text("in the agent")
    expect(spoken).not_to_contain_text("not saved yet")
    expect(page.locator("#run-head")).to_contain_text("Completed")
    run.refresh_from_db()
    assert state(run)["answer"] == WORDS
    assert not Spoken.objects.filter(run=run).exists()
    without.reload()
    expect(without.locator("#spoken")).to_contain_text("And this comes last.")


@pytest.mark.usefixtures("worker")
def test_whoever_may_not_see_the_run_does_not_hear_it_either(endpoint: Endpoint, unsaid: threading.Event) -> None:
    team = make_team()
    run = start(endpoint, Reply(WORDS, held=unsaid), team=team)
    until(lambda: Spoken.objects.filter(run=run).exists(), what="it speaks")
    address = f"/runs/{run.pk}/spoken/"
    assert signed_in(eve()).get(address).status_code == 404
    heard: Any = signed_in(bob(team)).get(address)
    assert heard.status_code == 200
    assert "&lt;b&gt;First&lt;/b&gt; I" in heard.content.decode()
    assert signed_in(bob(team)).post(address).status_code == 405
