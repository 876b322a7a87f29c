"""What the pages say of the assistant: how to set it up, what a run took, and what it came to."""

from __future__ import annotations

from typing import Any

import pytest

from agents.examples.assistant import Assistant
from checkpoints.models import Run
from tests.agents.pages.test_run_page import page_of, text_of
from tests.factories import MEMBER, ann, bob, make_team
from tests.factories.driven_runs import advance_to_rest, answer, decide, open_gate
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

from .assistant_runs import DONE, WRITE, begun, calling
from .endpoint import KEY, Endpoint, Reply


def test_without_a_key_the_agents_page_says_how_to_set_one(settings: Any) -> None:
    starter = bob(make_team(may=MEMBER))
    assert "OPENAI_API_KEY" not in text_of(signed_in(starter).get("/agents/assistant/").content.decode())
    settings.OPENAI_API_KEY = ""
    said = text_of(signed_in(starter).get("/agents/assistant/").content.decode())
    assert "Setup needed before this agent can run." in said
    assert "set OPENAI_API_KEY" in said


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


def test_the_runs_page_says_the_tokens_the_cost_and_what_it_came_to(endpoint: Endpoint, settings: Any) -> None:
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


def test_without_prices_nothing_is_said_of_a_cost(endpoint: Endpoint) -> None:
    team = make_team()
    said = text_of(page_of(begun(endpoint, DONE, team=team), bob(team)))
    assert "Tokens 110" in said
    assert "cost" not in said


@pytest.mark.parametrize("wrong", ["meters", "result"])
def test_an_agent_whose_own_words_fail_costs_the_page_nothing_else(
    wrong: str, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = make_team()
    run = begun(endpoint, DONE, team=team)

    def fails(cls: Any, state: Any) -> Any:
        raise ValueError("mine")

    monkeypatch.setattr(Assistant, wrong, classmethod(fails))
    said = text_of(page_of(run, bob(team)))
    assert "Completed" in said
    assert "100 read" not in said


def test_the_page_of_a_long_conversation_is_read_in_twelve_statements(endpoint: Endpoint) -> None:
    team = make_team()
    run = begun(endpoint, *[calling(("list_files", {}))] * 50, DONE, team=team)
    client = signed_in(bob(team))
    with sent() as statements:
        assert client.get(f"/runs/{run.pk}/").status_code == 200
    assert len(statements) <= 12, statements
    assert Run.objects.get(pk=run.pk).status == "completed"
