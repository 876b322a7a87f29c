"""A thread on the pages: its run, its states, its comparisons and the form to edit one; beside what it asks."""

from __future__ import annotations

import pytest
from django.test import Client
from holdpoint import Holdpoint
from langchain_core.messages import HumanMessage

from checkpoints.models import Run
from tests.clients.langgraph.graphs import asker, config, talker
from tests.clients.langgraph.savers import savers
from tests.factories import ann, unique
from tests.harness.signed_in_clients import signed_in


@pytest.fixture
def talked() -> tuple[Client, Run]:
    thread = unique("chat")
    with savers("in process") as make:
        graph = talker(make())
        for words in ("Is North 1 free?", "Book it."):
            graph.invoke({"messages": [HumanMessage(words)]}, config(thread))
    run = Run.objects.get(thread=thread)
    return signed_in(ann(run.team)), run


def test_the_run_of_a_thread_is_shown_with_its_states(talked: tuple[Client, Run]) -> None:
    person, run = talked
    for page in ("", "timeline/", "events/", "verification/", "comparisons/?a=3&b=7"):
        answer = person.get(f"/runs/{run.pk}/{page}")
        assert answer.status_code == 200, page
    state = person.get(f"/runs/{run.pk}/checkpoints/{run.seq}/").content.decode()
    assert "answer 2" in state
    difference = person.get(f"/runs/{run.pk}/comparisons/?a=3&b={run.seq}").content.decode()
    assert "Book it." in difference


def test_its_state_can_be_edited_and_forked_on_the_page(talked: tuple[Client, Run]) -> None:
    person, run = talked
    for page in ("edit", "fork"):
        answer = person.get(f"/runs/{run.pk}/checkpoints/{run.seq}/{page}/")
        assert answer.status_code == 200, page
        assert "count" in answer.content.decode()


def test_an_interrupted_thread_is_listed_as_waiting_beside_its_gates(web: str) -> None:
    thread = unique("chat")
    with savers("over HTTP", web) as make:
        asker(make(), []).invoke({"question": "Pay?", "done": [], "answer": ""}, config(thread))
        with Holdpoint(web, make.token) as hp, hp.thread(thread):
            hp.ask.defer("pay", {"amount": "120.00"}, title="May I pay?")
        team = Run.objects.filter(thread=thread)[0].team
    told = signed_in(ann(team)).get("/runs/", {"thread": thread}).content.decode()
    assert "The graph waits for an answer to its interrupt." in told
    assert "May I pay?" in told
    assert Run.objects.filter(thread=thread).count() == 2
