"""What an attacker would try first: several calls in one task, edits of delta channels, malformed requests, middleware.

What was approved is byte for byte what runs, whatever middleware makes of it afterwards. And a subgraph with a memory
of its own runs each time that it is called: from its second call on it was not run, and its old result was written
again, the old answer included, since each superstep is a call without input, which LangGraph hands to its subgraphs as
a resumption.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from checkpoints.models import Run
from tests.agents.langgraph.odd_graphs import beside
from tests.agents.langgraph.test_moves import seq
from tests.agents.langgraph.test_questions import answers, asking, begun, heard, titles
from tests.agents.moves.moved_runs import after, edit
from tests.approvals.cards.verdicts.verdict_forms import say
from tests.factories.driven_runs import advance_to_rest, decide, open_gate, state
from tests.harness.examples import first_alone
from tests.harness.known_agents import fixtures_of

own_agents, workers = fixtures_of("tests.agents.langgraph.odd_graphs")
CALL = {"name": "pay", "args": {"to": "Ada"}}
RAISED = [
    "raised-in-a-subagent", "raised-and-swallowed", "raised-in-the-message", "raised-at-the-tool", "raised-per-call",
    "raised-awaited",
]  # fmt: skip


def noted(folder: Path) -> list[str]:
    return sorted((folder / "did.txt").read_text().splitlines())


@pytest.mark.parametrize("agent", first_alone(["one-tool-node-awaited", "one-tool-node"]))
def test_each_call_of_a_tool_node_is_made_once_under_a_key_of_its_own(agent: str, tmp_path: Path) -> None:
    """`once` gave the second call the first one's result, though it was never made."""
    run = begun(agent, messages=[{"role": "user", "content": str(tmp_path)}])
    assert run.status == "completed", run.reason
    assert [each.split()[0] for each in noted(tmp_path)] == ["a", "a", "b"]
    assert len({each.split()[1] for each in noted(tmp_path)}) == 3
    assert [each["content"] for each in state(run)["messages"][2:]] == ["noted a", "noted b", "noted a"]


def test_a_node_that_reads_the_history_of_its_own_graph_gets_that_of_this_superstep() -> None:
    run = begun("reads-its-own-history", value="x")
    assert (run.status, state(run)["said"]) == ("completed", []), run.reason


def test_a_malformed_request_is_asked_about_as_any_other_value() -> None:
    values: list[Any] = [
        {"action_requests": [{"args": {}}], "review_configs": []},
        {"action_requests": [{"name": "pay"}], "review_configs": [{"action_name": "pay"}]},
        {"action_requests": [CALL], "review_configs": [{}]},
        {"action_requests": [CALL], "review_configs": [{"action_name": "pay", "allowed_decisions": ["dance"]}]},
        {"action_requests": [], "review_configs": []},
        {"type": "tool_approval", "tool_call_id": "1"},
        {"action_request": {"action": "pay", "args": {}}, "config": {}},
    ]
    for value in values:
        run = begun("asks-anything", value=value)
        assert titles(run) == ["Answer the graph"], (value, run.reason)
        assert list(open_gate(run).asked.actions[0].verdicts) == ["edit"], value
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


@pytest.mark.parametrize(
    ("agent", "verdict"), [("reviews", "edit"), ("asks-in-the-tool", "edit"), ("reviews", "approve")]
)
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


def stopped(run: Run) -> str:
    """Why the run does not go on."""
    run = advance_to_rest(run)
    assert run.status == "waiting", state(run)
    assert "paid" not in str(state(run)["messages"])
    return str(open_gate(run).asked.to_json())


@pytest.mark.parametrize("agent", first_alone(RAISED, 3))
def test_a_call_that_was_changed_after_its_approval_does_not_run(agent: str) -> None:
    """An edit redirected a call past the target's own policy (langchain #40166)."""
    run = asking(agent)
    decide(run)
    told = stopped(run)
    assert "The call of pay" in told
    assert "was changed after it was approved: amount was 5 and was to be 99. It did not run." in told


def test_a_call_that_was_rejected_does_not_run() -> None:
    """Rejected tools ran anyway (langchain #37093)."""
    run = asking("runs-what-was-refused")
    decide(run, "reject", then="back", comment="No.")
    assert "was rejected at the gate, and was about to run all the same" in stopped(run)


def test_an_id_that_a_model_uses_again_is_another_call() -> None:
    run = asking("counts-from-zero")
    decide(run)
    run = advance_to_rest(run)
    assert [each.arguments["amount"] for each in open_gate(run).asked.actions] == [6]
    decide(run)
    assert heard(run) == "paid 5 to Ada || paid 6 to Ada || wrote to Ada: It comes."


def answered(run: Any, **said: str) -> Any:
    say(run, each=answers(run, **said))
    return advance_to_rest(run)


@pytest.mark.parametrize("agent", first_alone(["treasurer-awaited", "treasurer"]))
def test_it_asks_each_time_and_takes_each_answer(agent: str) -> None:
    run = begun(agent, invoice=1, asked=[])
    assert titles(run) == ["Pay invoice 1?"]
    run = answered(run, **{"Pay invoice 1?": "approved"})
    assert titles(run) == ["Pay invoice 2?"]
    run = answered(run, **{"Pay invoice 2?": "rejected"})
    assert run.status == "completed", run.reason
    assert [*dict.fromkeys(state(run)["asked"])] == ["1: approved", "2: rejected"]
    assert state(run)["invoice"] == 3


@pytest.mark.parametrize("first", first_alone(["z", "y", "plain"]))
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
