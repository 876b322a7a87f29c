"""A reviewer's edit of the state is what the graph goes on with; a rewind is its time travel; a kill loses nothing."""

from __future__ import annotations

import signal
from pathlib import Path

from checkpoints.models import Run
from tests.agents.moves.moved_runs import after, edit, rewind
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.approvals.cards.verdicts.verdict_forms import say
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate, state

from .test_approvals import asking, heard, ids
from .test_interrupts import answers, begun, lines, titles


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


def test_an_answer_is_not_taken_for_the_next_question_after_a_failure(tmp_path: Path, workers: KillableWorkers) -> None:
    run = begun("failing-between-questions", folder=str(tmp_path))
    say(run, each=answers(run, **{"First?": "A"}))
    assert workers.tell(f"{run.pk} ") == 0
    run = advance_to_rest(run)
    assert titles(run) == ["Second?"], "nobody has answered it"


def test_a_kill_inside_a_subagent_repeats_nothing_that_was_done(tmp_path: Path, workers: KillableWorkers) -> None:
    run = begun("dying-in-a-subagent", folder=str(tmp_path))
    say(run, each=answers(run, **{"Pay?": "yes"}))
    assert workers.tell(f"{run.pk} ") == -signal.SIGKILL
    run = go_on(run)
    assert run.status == "completed", run.reason
    assert state(run)["said"] == ["approved yes", "survivor"]
    assert lines(tmp_path).count("approved") == 2, "once to ask, and once with the answer"


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


def test_a_rewind_to_a_question_asks_it_anew(tmp_path: Path) -> None:
    run = begun("two-questions", folder=str(tmp_path))
    say(run, each=answers(run, **{"Left?": "L", "Right?": "R"}))
    run = advance_to_rest(run)
    run = advance_to_rest(rewind(run, first(run, "prepare")))
    assert titles(run) == ["Left?", "Right?"]
    say(run, each=answers(run, **{"Left?": "l", "Right?": "r"}))
    run = advance_to_rest(run)
    say(run, each=answers(run, **{"Left again?": "x"}))
    assert state(advance_to_rest(run))["said"] == ["left l", "again x", "right r"]


def test_finished_tasks_are_reused_after_a_rewind_to_the_question(tmp_path: Path) -> None:
    run = begun("functional", input={"folder": str(tmp_path)})
    say(run, each=answers(run, **{"Go on?": "yes"}))
    run = advance_to_rest(run)
    run = advance_to_rest(rewind(run, first(run, "prepare")))
    say(run, each=answers(run, **{"Go on?": "no"}))
    assert state(advance_to_rest(run))["output"] == "AB no"
    assert lines(tmp_path).count("costly") == 2


def test_who_sends_a_run_back_reaches_the_model_with_their_words() -> None:
    run = asking("one-call")
    decide(run, "reject", then="back", back_to="go", comment="Ask for the sum first.")
    run = advance_to_rest(run)
    decide(run)
    told = heard(run)
    assert told == "tool: paid 5 to Ada || human: A reviewer sent you back to here: Ask for the sum first."


def first(run: Run, step: str) -> int:
    """The number of the checkpoint that `step` first led to."""
    return after(run, step, last=False)


def test_a_rewind_runs_the_superstep_again_and_what_was_approved_is_asked_anew(tmp_path: Path) -> None:
    run = begun("charges-first", folder=str(tmp_path))
    say(run, each=answers(run, **{"Charged. Go on?": "yes"}))
    run = advance_to_rest(rewind(advance_to_rest(run), first(run, "go")))
    assert titles(run) == ["Charged. Go on?"], run.reason
    keys = {each for each in (tmp_path / "did.txt").read_text().splitlines() if each.startswith("key")}
    assert len(keys) == 1, "the provider gets the same key"
