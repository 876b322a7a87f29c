"""What an attacker would try first: several calls in one task, edits of delta channels, malformed requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agents.moves.moved_runs import edit
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.approvals.cards.verdicts.verdict_forms import say
from tests.factories.driven_runs import advance_to_rest, make_run, open_gate, state
from tests.harness.known_agents import fixtures_of

from .test_interrupts import answers, begun, titles
from .test_once_approved import seq

own_agents, workers = fixtures_of("tests.agents.langgraph.odd_graphs")
CALL = {"name": "pay", "args": {"to": "Ada"}}


def noted(folder: Path) -> list[str]:
    return sorted((folder / "did.txt").read_text().splitlines())


@pytest.mark.parametrize("agent", ["one-tool-node", "one-tool-node-awaited"])
def test_each_call_of_a_tool_node_is_made_once_under_a_key_of_its_own(agent: str, tmp_path: Path) -> None:
    """`once` gave the second call the first one's result, though it was never made."""
    run = begun(agent, messages=[{"role": "user", "content": str(tmp_path)}])
    assert run.status == "completed", run.reason
    assert [each.split()[0] for each in noted(tmp_path)] == ["a", "a", "b"]
    assert len({each.split()[1] for each in noted(tmp_path)}) == 3
    assert [each["content"] for each in state(run)["messages"][2:]] == ["noted a", "noted b", "noted a"]


def test_a_kill_after_the_last_task_repeats_none(tmp_path: Path, workers: KillableWorkers) -> None:
    run = make_run("one-tool-node", messages=[{"role": "user", "content": str(tmp_path)}])
    workers.kill(run, "after_step@go", hit=3)
    before = noted(tmp_path)
    run = go_on(run)
    assert run.status == "completed", run.reason
    assert noted(tmp_path) == before


@pytest.mark.parametrize(
    "value",
    [
        {"action_requests": [{"args": {}}], "review_configs": []},
        {"action_requests": [{"name": "pay"}], "review_configs": [{"action_name": "pay"}]},
        {"action_requests": [CALL], "review_configs": [{}]},
        {"action_requests": [CALL], "review_configs": [{"action_name": "pay", "allowed_decisions": ["dance"]}]},
        {"action_requests": [], "review_configs": []},
        {"type": "tool_approval", "tool_call_id": "1"},
        {"action_request": {"action": "pay", "args": {}}, "config": {}},
    ],
    ids=["no name", "no arguments", "no tool", "no verdict", "no call", "no such call", "nothing allowed"],
)
def test_a_malformed_request_is_asked_about_as_any_other_value(value: Any) -> None:
    run = begun("asks-anything", value=value)
    assert titles(run) == ["Answer the graph"], run.reason
    assert list(open_gate(run).asked.actions[0].verdicts) == ["edit"]
    say(run, each=answers(run, **{"Answer the graph": '{"ok": true}'}))
    assert state(advance_to_rest(run))["said"] == {"ok": True}


@pytest.mark.parametrize(
    ("next_step", "log"),
    [("go", ["EDITED", "said no", "after 2"]), ("", ["EDITED", "after 1"])],
    ids=["before it is used", "after it was used"],
)
def test_an_edit_of_a_delta_channel_after_an_answer_is_what_the_graph_goes_on_with(
    next_step: str, log: list[str]
) -> None:
    run = begun("deltas")
    say(run, each=answers(run, **{"Go on?": "yes"}))
    run = advance_to_rest(run)
    at = seq(run, step="hear") if next_step else seq(run, step="go", next_step="go")
    run = advance_to_rest(edit(run, at, log=["EDITED"]))
    if next_step:
        say(run, each=answers(run, **{"Go on?": "no"}))
        run = advance_to_rest(run)
    assert state(run)["log"] == log, run.reason


@pytest.mark.parametrize("agent", ["reviews", "asks-in-the-tool"])
@pytest.mark.parametrize("verdict", ["approve", "edit"])
def test_a_call_runs_as_it_was_decided_wherever_the_graph_asks_about_it(agent: str, verdict: str) -> None:
    run = begun(agent, messages=[{"role": "user", "content": "Pay Ada."}])
    [action] = open_gate(run).asked.actions
    said = {"arguments": {"to": "Ada", "amount": 3}} if verdict == "edit" else {}
    say(run, each={action.id: {"verdict": verdict, **said}})
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    paid = next(each["content"] for each in state(run)["messages"] if each["type"] == "tool")
    assert paid == f"paid {3 if verdict == 'edit' else 5} to Ada"


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ({"verdict": "edit", "arguments": {"to": "Ada", "amount": 3}}, "amount was 3 and was to be 5"),
        ({"verdict": "respond", "response": "Paid by hand."}, "was answered at the gate"),
    ],
    ids=["edit", "respond"],
)
def test_a_node_that_does_not_heed_the_answer_does_not_run_the_call(verdict: Any, words: str) -> None:
    run = begun("reviews-carelessly", messages=[{"role": "user", "content": "Pay Ada."}])
    [action] = open_gate(run).asked.actions
    say(run, each={action.id: verdict})
    run = advance_to_rest(run)
    assert run.status == "waiting"
    assert words in str(open_gate(run).asked.to_json())
