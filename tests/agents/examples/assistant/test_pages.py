"""What the pages say of the assistant: how to set it up, what it says now, what a run took, and what it came to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from playwright.sync_api import Page, expect

from agents import AgentError
from agents.examples.assistant import Assistant
from agents.models import Spoken
from checkpoints.models import Checkpoint, Run
from checkpoints.store import claims
from tests.agents.pages.test_run_page import page_of, text_of
from tests.factories import MEMBER, ann, bob, eve, make_team
from tests.factories.driven_runs import advance_to_rest, answer, decide, open_gate, state
from tests.harness.browser_checks import check, is_live, watched
from tests.harness.racing_threads import race
from tests.harness.session import ROOT
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import PATIENCE

from .assistant_runs import DONE, WRITE, begun, start
from .endpoint import KEY, Endpoint, Reply


@pytest.mark.parametrize("key", ["", "sk-some"])
def test_the_command_and_the_agents_page_say_where_a_key_is_missing(
    key: str, endpoint: Endpoint, settings: Any
) -> None:
    settings.OPENAI_API_KEY = key
    team, out, err = make_team(may=MEMBER), StringIO(), StringIO()
    said = text_of(signed_in(bob(team)).get("/agents/assistant/").content.decode())
    assert ("Setup needed before this agent can run." in said, "set OPENAI_API_KEY" in said) == (not key, not key)
    given = ("--input", '{"task": "Look around."}', "--team", team.name)
    call_command("run_agent", "assistant", *given, stdout=out, stderr=err)
    run = Run.objects.get(team=team)
    assert (run.title, run.status) == ("Look around.", "queued")
    assert f"/runs/{run.pk}/" in out.getvalue()
    assert ("set OPENAI_API_KEY" in err.getvalue()) == (not key)


def test_a_folder_of_texts_is_a_task_each(tmp_path: Path) -> None:
    examples = ROOT / "agents" / "examples"
    [summary] = Assistant.inputs_from(examples / "assistant" / "tasks")
    assert summary["task"].startswith("Summarise what is in the folder")
    (tmp_path / "b.txt").write_text("Second.")
    (tmp_path / "a.md").write_text("First.")
    (tmp_path / "c.bin").write_text("Neither.")
    assert Assistant.inputs_from(tmp_path) == [{"task": "First."}, {"task": "Second."}]
    assert Assistant.inputs_from(tmp_path / "c.bin") == [{"task": "Neither."}]
    with pytest.raises(AgentError, match=r"no .md or .txt file"):
        Assistant.inputs_from(examples / "refunds" / "mails")


def test_a_run_without_a_key_says_so_shows_no_traceback_and_goes_on_once_there_is_one(
    endpoint: Endpoint, settings: Any
) -> None:
    settings.OPENAI_API_KEY = ""
    team = make_team()
    run = begun(endpoint, DONE, team=team)
    gate = text_of(signed_in(ann(team)).get(f"/gates/{open_gate(run).pk}/").content.decode())
    page = text_of(page_of(run, bob(team)))
    assert "set OPENAI_API_KEY" in gate
    assert "set OPENAI_API_KEY" in page
    assert "Traceback" not in gate + page
    assert endpoint.requests == []
    settings.OPENAI_API_KEY = KEY
    answer(run, "retry")
    assert advance_to_rest(run).status == "completed"


def test_the_runs_page_says_the_tokens_the_cost_and_what_it_came_to(
    endpoint: Endpoint, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HOLDPOINT_ASSISTANT_PRICE_IN, settings.HOLDPOINT_ASSISTANT_PRICE_OUT = 2.0, 8.0
    team = make_team()
    last = Reply("The notes are <i>written</i>.", usage=(3000, 20))
    run = begun(endpoint, Reply(calls=[WRITE], usage=(1500, 200)), last, team=team)
    waiting = text_of(page_of(run, bob(team)))
    assert "Tokens 1,700 1,500 read, 200 written, 1 turn" in waiting
    assert "Result in the agent" not in waiting
    decide(run)
    advance_to_rest(run)
    ended = text_of(page_of(run, bob(team)))
    assert "Tokens 4,720 4,500 read, 220 written, 2 turns" in ended
    assert "Model cost $0.0108" in ended
    assert "Result in the agent" in ended
    assert "&lt;i&gt;written&lt;/i&gt;" in ended
    for wrong in ("meters", "result"):  # an agent whose own words fail costs the page nothing else
        monkeypatch.setattr(Assistant, wrong, classmethod(lambda cls, state: 1 / 0))
    said = text_of(page_of(run, bob(team)))
    assert ("Completed" in said, "4,500 read" in said) == (True, False)


def test_whoever_may_not_see_the_run_does_not_hear_the_model_speak_either(endpoint: Endpoint) -> None:
    team = make_team()
    run = start(endpoint, DONE, team=team)
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="w", lease=10)
    assert claim is not None
    assert run.head is not None
    Spoken.objects.say(run.pk, token=claim.token, base=run.head, step="think", attempt=1, text="<b>First</b> I")
    address = f"/runs/{run.pk}/spoken/"
    assert signed_in(eve()).get(address).status_code == 404
    heard: Any = signed_in(bob(team)).get(address)
    assert (heard.status_code, "&lt;b&gt;First&lt;/b&gt; I" in heard.content.decode()) == (200, True)
    assert signed_in(bob(team)).post(address).status_code == 405


WORDS = "<b>First</b> I look at the desk. Then I write all of it down. And this comes last."


def test_words_appear_while_the_model_speaks_and_are_gone_when_they_are_saved(
    new_page: Callable[..., Page], endpoint: Endpoint
) -> None:
    """The model stops before its last words until they were looked at."""
    team, unsaid = make_team(), threading.Event()
    page = new_page(bob(team), viewport={"width": 390, "height": 800})
    said = watched(page)
    run = start(endpoint, Reply(WORDS, held=unsaid, slow=0.1), team=team)
    page.goto(f"/runs/{run.pk}/")
    is_live(page)
    with ThreadPoolExecutor(1) as worker:
        working = worker.submit(race, [lambda: advance_to_rest(Run.objects.get(pk=run.pk))])
        spoken = page.locator("#spoken")
        expect(spoken).to_contain_text("<b>First</b> I")
        expect(spoken).to_contain_text("not saved yet")
        assert Checkpoint.objects.filter(run=run, step="think").count() == 0
        assert check(page, "", said) == []
        without = signed_in(bob(team)).get(f"/runs/{run.pk}/").content.decode()
        assert "&lt;b&gt;First&lt;/b&gt; I" in without
        unsaid.set()
        assert [ended.status for ended in working.result(PATIENCE)] == ["completed"]
    expect(spoken).to_contain_text("in the agent")
    expect(spoken).not_to_contain_text("not saved yet")
    expect(page.locator("#run-head")).to_contain_text("Completed")
    assert state(run)["answer"] == WORDS
    assert not Spoken.objects.filter(run=run).exists()
