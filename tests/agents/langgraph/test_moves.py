"""A reviewer's edit of the state is what the graph goes on with; a rewind is its time travel; a kill loses nothing.

An approval is for one execution: whoever moves a run, or edits its state, does not decide by it what its gate was
asked, and reads before that which tools have run inside it, since nothing undoes those.
"""

from __future__ import annotations

import base64
import signal
from pathlib import Path
from typing import Any

import pytest

from agents.moves import fork as forks
from agents.moves import impact
from approvals.impact.result import Impact, ToolsInside
from approvals.presentation.drawing.impact_words import lines_of
from checkpoints import store
from checkpoints.models import Checkpoint, Run
from tests.agents.langgraph.test_questions import LATER, answers, asking, begun, heard, ids, titles
from tests.agents.moves.moved_runs import after, edit, rewind
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, say
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate, state
from tests.harness.examples import first_alone


def test_what_had_finished_when_a_worker_was_killed_is_not_done_again(tmp_path: Path, workers: KillableWorkers) -> None:
    run = make_run("dying", folder=str(tmp_path))
    assert workers.tell(f"{run.pk} ") == -signal.SIGKILL
    run = go_on(run)
    assert run.status == "completed", run.reason
    assert sorted(state(run)["said"]) == ["survivor", "works"]
    done = (tmp_path / "did.txt").read_text().splitlines()
    assert done.count("works") == 1
    [victim], [survivor] = ([each for each in done if each.startswith(who)] for who in ("victim", "survivor"))
    assert victim.split()[1] == survivor.split()[1], "the key for the provider is the same"


def test_an_answer_is_not_taken_for_the_next_question_after_a_kill(tmp_path: Path, workers: KillableWorkers) -> None:
    run = begun("asking-twice-beside-dying", folder=str(tmp_path))
    say(run, each=answers(run, **{"First?": "A", "Ready?": "R"}))
    assert workers.tell(f"{run.pk} ") == -signal.SIGKILL
    run = go_on(run)
    assert titles(run) == ["Second?"], "nobody has answered it"
    say(run, each=answers(run, **{"Second?": "B"}))
    run = advance_to_rest(run)
    assert sorted(state(run)["said"]) == ["first A", "ready R", "second B"]


def test_an_edit_of_a_channel_is_what_the_interrupted_node_reads_and_asks_again_with(tmp_path: Path) -> None:
    run = begun("typed", customer="Ada")
    asked = ids(run)
    run = edit(run, after(run, "go"), customer="Bob")
    run = advance_to_rest(run)
    assert titles(run) == ["How much for Bob?"]
    assert ids(run) != asked, "what was asked before cannot be answered any more"
    decide(run, "edit", arguments={ids(run)[0]: {"amount": 3, "reason": "late"}})
    assert state(advance_to_rest(run))["answer"] == "3 because it was late"
    assert state(run)["langgraph"]["root"]["metadata"]["step"] > 1


def test_an_edit_of_the_messages_changes_what_is_asked_and_run() -> None:
    run = asking("one-call")
    messages = state(run)["messages"]
    messages[-1]["tool_calls"][0]["args"] = {"to": "Cyd", "amount": 1}
    run = advance_to_rest(edit(run, after(run, "go"), messages=messages))
    [action] = open_gate(run).asked.actions
    assert action.arguments == {"to": "Cyd", "amount": 1}
    decide(run)
    assert heard(run) == "tool: paid 1 to Cyd"


def test_who_sends_a_run_back_reaches_the_model_with_their_words() -> None:
    run = asking("one-call")
    decide(run, "reject", then="back", back_to="go", comment="Ask for the sum first.")
    run = advance_to_rest(run)
    decide(run)
    told = heard(run)
    assert told == "tool: paid 5 to Ada || human: A reviewer sent you back to here: Ask for the sum first."


def paid() -> Run:
    """A run whose only call was approved, and has run."""
    run = asking("one-call")
    decide(run)
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    return run


def seq(run: Run, **found: Any) -> int:
    """The number of the run's last checkpoint like this."""
    return int(Checkpoint.objects.filter(run=run, **found).order_by("-seq").values_list("seq", flat=True)[0])


def asks_anew(run: Run) -> None:
    run = advance_to_rest(run)
    assert run.status == "waiting", run.reason
    assert "paid" not in str(state(run)["messages"]), "it ran under an approval that was given once"
    assert titles(run) == ["Pay"]
    decide(run)
    assert heard(run) == "tool: paid 5 to Ada"


@pytest.mark.parametrize(("step", "next_step"), first_alone([("hear", "go"), ("ask", "hear"), ("prepare", "ask")]))
def test_a_rewind_to_around_the_question_asks_anew(step: str, next_step: str) -> None:
    run = paid()
    asks_anew(rewind(run, seq(run, step=step, next_step=next_step)))


@pytest.mark.parametrize("next_step", first_alone(["ask", "prepare", "hear", "go"]))
def test_an_edit_of_what_nobody_decides_by_asks_anew(next_step: str) -> None:
    run = paid()
    at = seq(run, next_step=next_step, step={"prepare": "go", "ask": "prepare", "hear": "ask", "go": "hear"}[next_step])
    asks_anew(edit(run, at, heard=7))


def test_a_fork_asks_anew() -> None:
    run = paid()
    patch = [{"op": "replace", "path": "/heard", "value": 7}]  # else what is recorded is used, and nothing runs
    asks_anew(forks.fork(run, at=seq(run, step="hear"), by=ann(run.team), patch=patch))


def test_a_rejection_is_not_made_an_approval_by_an_edit_of_the_decision() -> None:
    run = asking("one-call")
    decide(run, "reject", then="back", comment="No.")
    run = advance_to_rest(run)
    asks_anew(edit(run, seq(run, kind="rewind", next_step="prepare"), decision={"kind": "approved"}))


def test_a_verdict_that_waited_for_others_is_asked_for_again_after_a_rewind() -> None:
    run = asking("batched")
    pay, write = ids(run)
    say(run, each={pay: APPROVE, write: LATER})
    run = advance_to_rest(run)
    assert ids(run) == [write]
    run = advance_to_rest(rewind(run, seq(run, step="prepare", next_step="ask")))
    assert ids(run) == [pay, write]


def test_a_graph_that_was_compiled_to_stop_asks_before_it_goes_on_after_an_edit_too(tmp_path: Path) -> None:
    run = begun("stopping", folder=str(tmp_path))
    assert titles(run) == ["Go on before works"]
    run = advance_to_rest(edit(run, seq(run, step="go"), end="elsewhere"))
    assert run.status == "waiting", run.reason
    assert titles(run) == ["Go on before works"]
    assert not (tmp_path / "did.txt").exists()
    decide(run)
    run = advance_to_rest(run)
    assert (run.status, state(run)["end"]) == ("completed", "elsewhere")
    assert (tmp_path / "did.txt").read_text() == "works\n"


def test_an_approved_call_that_is_due_does_not_run_a_second_time() -> None:
    run = paid()
    at = Checkpoint.objects.filter(run=run, step="go", seq__gt=seq(run, step="hear")).order_by("seq")[0].seq
    run = advance_to_rest(rewind(run, at))
    assert run.status == "waiting", run.reason
    assert "paid" not in str(state(run)["messages"])
    assert "was approved for one execution" in str(open_gate(run).asked.to_json())


def at(run: Run, seq: int) -> Any:
    """The state of one of the run's checkpoints."""
    return store.load_checkpoint(Checkpoint.objects.get(run=run, seq=seq).pk).state


def refused(run: Run, field: str) -> None:
    run = advance_to_rest(run)
    assert f"The field `{field}`" in str(open_gate(run).asked.to_json()) or f"The field `{field}`" in run.reason
    assert "paid" not in str(state(run)["messages"])


def test_a_rejection_is_not_made_an_approval_by_an_edit_of_the_answers() -> None:
    run = asking("one-call")
    decide(run, "reject", then="back", comment="No.")
    run, heard_at = advance_to_rest(run), after(run, "hear")
    forged = {name: {"decisions": [{"type": "approve"}]} for name in at(run, heard_at)["answers"]}
    refused(edit(run, heard_at, answers=forged), "langgraph")


def test_an_approved_call_is_not_changed_where_it_waits_to_run() -> None:
    run = asking("one-call")
    decide(run)
    run = advance_to_rest(run)
    seq, found = next(
        (each.seq, at(run, each.seq)["langgraph"])
        for each in run.checkpoints.filter(step="go", next_step="go").order_by("seq")
        if at(run, each.seq)["langgraph"]["root"]["values"].get("__pregel_tasks")
    )
    [due] = found["root"]["values"]["__pregel_tasks"]
    called = base64.b64decode(due["base64"])
    due["base64"] = base64.b64encode(called.replace(b"\xa6amount\x05", b"\xa6amount\x63")).decode()
    assert base64.b64decode(due["base64"]) != called
    run = advance_to_rest(edit(run, seq, langgraph=found))
    assert "paid 99" not in str(state(run)["messages"])
    assert run.status == "waiting"


def test_a_question_does_not_show_another_call_than_the_one_that_runs() -> None:
    run = asking("one-call")
    [question] = state(run)["questions"]
    question["asked"] = question["arguments"] = {"to": "Ada", "amount": 1}
    run = advance_to_rest(edit(run, after(run, "prepare"), questions=[question]))
    decide(run)
    refused(run, "questions")


def test_a_verdict_that_waits_for_others_cannot_be_given_by_hand() -> None:
    run = asking("batched")
    pay, write = state(run)["questions"]
    pay["decided"] = {"verdict": "approve"}
    run = advance_to_rest(edit(run, after(run, "prepare"), questions=[pay, write]))
    decide(run)
    refused(run, "questions")


def test_a_question_is_not_changed_where_it_is_about_to_be_asked() -> None:
    run = asking("one-call")
    found = state(run)["langgraph"]
    found["asks"][0]["value"]["action_requests"][0]["args"] = {"to": "Ada", "amount": 1}
    run = advance_to_rest(edit(run, after(run, "go"), langgraph=found))
    refused(run, "langgraph")


def line(found: Impact) -> str:
    [told] = [each for each in lines_of(found, later=False, at_gate=False) if each.title == "Tools stay done"]
    return f"{', '.join(told.names)}; {told.said}"


def test_a_rewind_names_the_tools_that_ran_and_where() -> None:
    run = paid()
    ran = next(each.seq for each in run.checkpoints.order_by("seq") if at(run, each.seq)["messages"][-1].get("name"))
    found = impact.of_rewind(run, seq(run, step="prepare"))
    assert found.inside == (ToolsInside(checkpoint=ran, tools=("pay",)),)
    assert line(found) == f"pay; Called inside checkpoint {ran}: nothing undoes that, and it may happen again"
    assert found.to_json()["inside"] == [{"checkpoint": ran, "tools": ["pay"]}]
    place, patch = seq(run, step="hear"), [{"op": "replace", "path": "/heard", "value": 7}]
    for moved in (impact.of_edit(run, place, patch), impact.of_fork(run, place, patch)):
        assert [each.tools for each in moved.inside] == [("pay",)]
    without = impact.of_rewind(run, seq(run, step="go", next_step="go"))
    assert (without.inside, without.digest() != impact.of_rewind(run, place).digest()) == ((), True)
