"""A call that a step makes once: kept across crash, retry and "try again", made anew after "send back"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents import AgentError
from agents.compatibility import validation
from agents.definition import registry
from agents.definition.registry import agent_named
from agents.models import Memo
from tests.factories.driven_runs import advance, advance_to_rest, answer, decide, failures, make_run, state, trail

from .killable_workers import KillableWorkers, go_on


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What was really called, a line a call."""
    return tmp_path / "ledger"


def asked(ledger: Path, what: str) -> int:
    """How often this was asked."""
    return ledger.read_text().splitlines().count(f"ask {what}")


def test_what_a_call_gave_comes_back_as_json_gives_it_the_first_time_too(ledger: Path) -> None:
    run = advance(make_run("caller", ledger=str(ledger)))
    assert (state(run)["answer"], state(run)["kinds"]) == ([1, ["why?"]], ["list"])


def test_the_same_call_is_made_once_in_a_step_and_another_salt_is_another_call(ledger: Path) -> None:
    run = advance(make_run("caller", ledger=str(ledger), mode="twice"))
    assert state(run)["answer"] == [[1, ["why?"]], [1, ["why?"]], [2, ["why?"]]]


def test_a_step_that_is_tried_again_finds_what_it_called_before(ledger: Path) -> None:
    run = advance_to_rest(make_run("caller", ledger=str(ledger), mode="raise"))
    assert (len(failures(run)), run.status) == (2, "waiting")
    assert (asked(ledger, "why?"), state(run)["answer"]) == (1, [1, ["why?"]])


@pytest.mark.parametrize("place", ["after_step@think", "before_save@think"])
def test_a_step_whose_worker_was_killed_finds_what_it_called_before(
    place: str, ledger: Path, workers: KillableWorkers
) -> None:
    run = make_run("caller", ledger=str(ledger))
    workers.kill(run, place)
    go_on(run)
    assert (asked(ledger, "why?"), state(run)["answer"]) == (1, [1, ["why?"]])


def test_a_person_who_has_it_tried_again_does_not_have_it_called_again(ledger: Path, tmp_path: Path) -> None:
    run = advance(make_run("caller", ledger=str(ledger), mode="hopeless", flag=str(tmp_path / "flag")))
    for _ in range(2):
        answer(run, "retry")
        assert advance(run).status == "waiting"
    (tmp_path / "flag").touch()
    answer(run, "retry")
    advance(run)
    assert (asked(ledger, "why?"), state(run)["answer"]) == (1, [1, ["why?"]])


def test_a_step_that_is_sent_back_calls_anew(ledger: Path) -> None:
    run = advance(make_run("caller", ledger=str(ledger)))
    decide(run, "reject", then="back", back_to="think")
    advance(run)
    assert asked(ledger, "why?") == 2


def test_a_refused_output_is_not_made_of_the_same_call_again(ledger: Path, tmp_path: Path) -> None:
    run = advance(make_run("caller", ledger=str(ledger), mode="refuse", flag=str(tmp_path / "flag")))
    assert (run.status, asked(ledger, "why?")) == ("waiting", 2)  # the step itself, once more, then a person
    (tmp_path / "flag").touch()
    answer(run, "retry")
    advance(run)
    assert asked(ledger, "why?") == 3


def test_gates_and_effects_call_once_too(ledger: Path) -> None:
    run = advance(make_run("caller", ledger=str(ledger)))
    decide(run)
    advance(run)
    assert advance(run).status == "completed"
    assert [line.partition(" ")[2] for line in ledger.read_text().splitlines()] == ["why?", "title", "plan"]
    assert Memo.objects.filter(run=run).count() == 3


WRONG = [
    ("object", "once('model'): /args/1 is a object, which JSON cannot say"),
    ("no json", "once('object'): the result is a object, which JSON cannot say"),
    ("no name", "once() takes a name of 1 to 100 printable characters"),
]


@pytest.mark.parametrize(("mode", "words"), WRONG)
def test_what_cannot_be_kept_is_refused_at_once_and_not_tried_again(mode: str, words: str, ledger: Path) -> None:
    run = advance(make_run("caller", ledger=str(ledger), mode=mode))
    assert (run.status, len(failures(run))) == ("waiting", 1)
    assert words in failures(run)[0].error


def test_a_result_that_is_larger_than_a_state_may_be_is_not_kept(ledger: Path, settings: Any) -> None:
    settings.HOLDPOINT_STATE_LIMIT = 1500
    run = advance(make_run("caller", ledger=str(ledger), mode="large"))
    assert (run.status, len(failures(run))) == ("waiting", 1)
    assert "once('large'): the result has 2,002 bytes; 1,500 are the most. Return less" in failures(run)[0].error


@pytest.mark.parametrize("mode", ["", "greedy"])
def test_a_worker_that_lost_its_run_amid_the_call_keeps_nothing_whatever_the_step_swallows(mode: str) -> None:
    run = make_run("robbed", ledger="", mode=mode)
    advance(run)
    assert (run.status, trail(run), Memo.objects.filter(run=run).exists()) == ("queued", [("input", "input")], False)
    assert failures(run) == []
    assert advance(run).status == "completed"
    assert state(run)["heard"] == "mine"


def test_of_two_workers_that_both_called_the_second_goes_on_with_the_first_ones_result() -> None:
    run = advance(make_run("robbed", ledger="", mode="beaten"))
    assert (run.status, state(run)["heard"]) == ("completed", "the first answer")


def test_a_call_outside_a_running_step_is_refused() -> None:
    agent = agent_named("caller").agent
    with pytest.raises(AgentError, match="outside a running step"):
        agent(None, 1).once("call", str)  # type: ignore[arg-type]
    plan = registry.register(agent_named("caller"))
    with pytest.raises(AgentError, match="outside a running step"):
        validation.redraw(plan, "review", {"ledger": "", "answer": 1}, {})


def test_a_validator_has_nothing_to_remember_by(ledger: Path) -> None:
    run = make_run("drafter", ledger=str(ledger), mode="remember")
    assert advance(run).status == "waiting"
    assert "once('call') was called outside a running step" in failures(run)[0].error
