"""The model's words appear on the run's page while it speaks, in a real browser, and go when its turn is saved."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from agents.models import Spoken
from agents.moves.cancel import cancel
from checkpoints.models import Checkpoint, Run
from tests.factories import bob, make_team
from tests.factories.driven_runs import state
from tests.harness import services
from tests.harness.browser_checks import check, is_live, watched
from tests.harness.signed_in_clients import signed_in

from .assistant_runs import start
from .endpoint import KEY, Endpoint, Reply

WORDS = "<b>First</b> I look at the desk. Then I write all of it down. And this comes last."


@pytest.fixture
def unsaid() -> Iterator[threading.Event]:
    """The model stops before its last words until this is set."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def worker(celery_worker: Callable[..., services.Service], endpoint: Endpoint, folder: Path) -> services.Service:
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
    run = start(endpoint, Reply(WORDS, held=unsaid, slow=0.1), team=team)
    page.goto(f"/runs/{run.pk}/")
    is_live(page)
    spoken = page.locator("#spoken")
    expect(spoken).to_contain_text("<b>First</b> I")
    expect(spoken).to_contain_text("not saved yet")
    assert Checkpoint.objects.filter(run=run, step="think").count() == 0
    assert check(page, "", said) == []
    without = signed_in(bob(team)).get(f"/runs/{run.pk}/").content.decode()
    assert "&lt;b&gt;First&lt;/b&gt; I" in without
    unsaid.set()
    expect(spoken).to_contain_text("in the agent")
    expect(spoken).not_to_contain_text("not saved yet")
    expect(page.locator("#run-head")).to_contain_text("Completed")
    run.refresh_from_db()
    assert state(run)["answer"] == WORDS
    assert not Spoken.objects.filter(run=run).exists()
