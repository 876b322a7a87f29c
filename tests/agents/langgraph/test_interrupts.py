"""A graph's interrupts are questions at the run's gate, answered by id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checkpoints.models import Run
from tests.approvals.cards.verdicts.verdict_forms import say
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate, state, trail

LATER = {"verdict": "later"}


def begun(agent: str, **given: Any) -> Run:
    return advance_to_rest(make_run(agent, **given))


def answers(run: Run, **said: Any) -> dict[str, Any]:
    """Verdicts by action: an answer for each title given, and the others later."""
    return {
        each.id: {"verdict": "edit", "arguments": {"answer": said[each.title]}} if each.title in said else LATER
        for each in open_gate(run).asked.actions
    }


def titles(run: Run) -> list[str]:
    return [each.title for each in open_gate(run).asked.actions]


def lines(folder: Path) -> list[str]:
    return (folder / "did.txt").read_text().split()


def test_two_interrupts_are_two_actions_and_both_answers_find_their_node(tmp_path: Path) -> None:
    run = begun("two-questions", folder=str(tmp_path))
    assert titles(run) == ["Left?", "Right?"]
    say(run, each=answers(run, **{"Left?": "L", "Right?": "R"}))
    run = advance_to_rest(run)
    assert titles(run) == ["Left again?"]
    say(run, each=answers(run, **{"Left again?": "true"}))
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    assert state(run)["said"] == ["left L", "again True", "right R"]
    assert state(run)["end"] == "left L / again True / right R"


def test_the_second_is_answered_first_and_the_first_waits_under_its_own_id(tmp_path: Path) -> None:
    run = begun("two-questions", folder=str(tmp_path))
    left = open_gate(run).asked.actions[0].id
    say(run, each=answers(run, **{"Right?": "R"}))
    run = advance_to_rest(run)
    assert [each.id for each in open_gate(run).asked.actions] == [left]
    say(run, each=answers(run, **{"Left?": "L"}))
    run = advance_to_rest(run)
    say(run, each=answers(run, **{"Left again?": "2"}))
    run = advance_to_rest(run)
    assert state(run)["said"] == ["left L", "again 2", "right R"]
    assert lines(tmp_path).count("right") == 2, "a node that was answered has run twice, and never again"


def test_the_card_says_that_the_node_runs_again_from_its_start(tmp_path: Path) -> None:
    run = begun("two-questions", folder=str(tmp_path))
    assert "the nodes “left” and “right” run again from their start" in open_gate(run).asked.summary


def test_a_response_schema_is_the_form_and_its_rules_hold(tmp_path: Path) -> None:
    run = begun("typed", customer="Ada")
    [action] = open_gate(run).asked.actions
    assert action.title == "How much for Ada?"
    assert action.schema["properties"]["amount"]["maximum"] == 100
    assert list(action.missing) == ["/amount"]
    decide(run, "edit", arguments={action.id: {"amount": 7, "reason": "broken"}})
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    assert state(run)["answer"] == "7 because it was broken"


def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_reason() -> None:
    run = begun("typed", customer="Ada")
    [action] = open_gate(run).asked.actions
    decide(run, "edit", arguments={action.id: {"amount": 700, "reason": "late"}})
    run = advance_to_rest(run)
    assert "was not taken: /amount" in open_gate(run).asked.summary


def test_a_question_of_a_graph_in_a_graph_in_a_graph_is_answered_where_it_was_asked(tmp_path: Path) -> None:
    run = begun("nested_graph", folder=str(tmp_path))
    assert titles(run) == ["How deep?"]
    say(run, each=answers(run, **{"How deep?": "far"}))
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    assert state(run)["said"] == ["deep far"]
    assert lines(tmp_path) == ["before", "deepest", "deepest"]


def test_finished_tasks_of_a_function_are_not_done_again_after_an_answer(tmp_path: Path) -> None:
    run = begun("functional", input={"folder": str(tmp_path)})
    say(run, each=answers(run, **{"Go on?": "yes"}))
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    assert state(run)["output"] == "AB yes"
    assert sorted(lines(tmp_path)) == ["a", "b", "costly", "costly"]


def test_a_graph_that_was_compiled_to_stop_asks_before_it_goes_on(tmp_path: Path) -> None:
    run = begun("stopping", folder=str(tmp_path))
    assert titles(run) == ["Go on before works"]
    decide(run)
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    assert lines(tmp_path) == ["works"]


def test_each_superstep_is_a_checkpoint_with_the_channels_as_fields(tmp_path: Path) -> None:
    run = begun("two-questions", folder=str(tmp_path))
    say(run, each=answers(run, **{"Left?": "L", "Right?": "R"}))
    steps = [step for _, step in trail(advance_to_rest(run))]
    assert steps == ["input", "go", "go", "prepare", "ask", "hear", "go", "prepare"]
    assert state(run)["folder"] == str(tmp_path)


def test_a_graph_that_can_only_be_awaited_is(tmp_path: Path) -> None:
    run = begun("awaited", folder=str(tmp_path))
    say(run, each=answers(run, **{"Awaited?": "yes"}))
    run = advance_to_rest(run)
    assert state(run)["said"] == ["YES"], run.reason


def test_what_a_node_did_once_before_it_asked_is_not_done_again_when_it_runs_again(tmp_path: Path) -> None:
    """Side effects ran twice on a resume (langgraph #6577)."""
    run = begun("charges-first", folder=str(tmp_path))
    say(run, each=answers(run, **{"Charged. Go on?": "yes"}))
    run = advance_to_rest(run)
    assert state(run)["said"] == ["yes"], run.reason
    done = (tmp_path / "did.txt").read_text().splitlines()
    assert done.count("charged") == 1
    [before, after] = [each for each in done if each.startswith("key")]
    assert before == after
