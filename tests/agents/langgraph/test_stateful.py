"""A subgraph with a memory of its own runs each time that it is called, whoever takes the graph further.

From its second call on it was not run, and its old result was written again, the old answer included: each superstep is
a call without input, which LangGraph hands to its subgraphs as a resumption.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from tests.agents.moves.moved_runs import after, edit
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.approvals.cards.verdicts.verdict_forms import say
from tests.factories.driven_runs import advance_to_rest, make_run, state
from tests.harness.known_agents import fixtures_of

from .stateful_graphs import beside
from .test_interrupts import answers, begun, lines, titles

own_agents, workers = fixtures_of("tests.agents.langgraph.stateful_graphs")


def answered(run: Any, **said: str) -> Any:
    say(run, each=answers(run, **said))
    return advance_to_rest(run)


@pytest.mark.parametrize("agent", ["treasurer", "treasurer-awaited"])
def test_it_asks_each_time_and_takes_each_answer(agent: str) -> None:
    run = begun(agent, invoice=1, asked=[])
    assert titles(run) == ["Pay invoice 1?"]
    run = answered(run, **{"Pay invoice 1?": "approved"})
    assert titles(run) == ["Pay invoice 2?"]
    run = answered(run, **{"Pay invoice 2?": "rejected"})
    assert run.status == "completed", run.reason
    assert [*dict.fromkeys(state(run)["asked"])] == ["1: approved", "2: rejected"]
    assert state(run)["invoice"] == 3


@pytest.mark.parametrize("first", ["y", "plain", "z"])
def test_it_goes_on_and_does_not_begin_anew_while_others_at_once_are_answered(first: str) -> None:
    graph, place = beside().compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "t"}}
    graph.invoke({"round": 1, "log": []}, place)
    while asked := graph.get_state(place).interrupts:
        graph.invoke(Command(resume={each.id: "yes" for each in asked}), place)
    run = begun("beside", round=1, log=[])
    run = answered(run, **dict.fromkeys(titles(run), "yes"))
    assert sorted(titles(run)) == ["plain 2 a?", "y 2 a?", "z 2 a?"]
    run = answered(run, **{f"{first} 2 a?": "yes"})
    run = answered(run, **dict.fromkeys(titles(run), "yes"))
    assert run.status == "completed", run.reason
    assert sorted(state(run)["log"]) == sorted(graph.get_state(place).values["log"])


def test_it_asks_again_about_what_somebody_edited_meanwhile_with_the_memory_of_before() -> None:
    run = begun("treasurer", invoice=1, asked=[])
    run = answered(run, **{"Pay invoice 1?": "approved"})
    run = advance_to_rest(edit(run, after(run, "go"), invoice=9))
    assert titles(run) == ["Pay invoice 9?"]
    before = max(state(run)["langgraph"]["under"]["treasurer"].items())[1]["values"]["asked"]
    assert before == ["1: approved", "1: approved"], "its own, and the graph's once"


def test_it_runs_where_a_worker_was_killed_before_it_began(tmp_path: Path, workers: KillableWorkers) -> None:
    run = make_run("dying-before-its-ledger", round=1, log=[], folder=str(tmp_path))
    assert workers.tell(f"{run.pk} ") == -signal.SIGKILL
    run = go_on(run)
    assert run.status == "completed", run.reason
    assert {*state(run)["log"]} == {"waited 1", "waited 2", "wrote 1", "wrote 2"}
    assert lines(tmp_path) == ["started-1", "started-2"], "what the other had done is not done again"
