"""A step's own policies: pauses between attempts, a step that catches, a guard, and calls that are made once."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agents import AgentError
from agents.compatibility import edited_states
from agents.definition import registry
from agents.definition.registry import agent_named
from agents.errors import StepTimeout
from agents.models import Memo
from agents.pages.run.row import read_again
from agents.pages.run.story import scene_of
from agents.pages.run.timeline import build
from agents.steps import alarms, retry
from checkpoints.models import Checkpoint, Run
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.factories import ann
from tests.factories.driven_runs import (
    advance,
    advance_to_rest,
    answer,
    decide,
    failures,
    make_run,
    open_gate,
    state,
    trail,
)


def test_a_step_names_its_first_pause_and_they_are_spread_and_come_to_a_limit_that_a_longer_one_lifts() -> None:
    assert len({retry.backoff(3, 10) for _ in range(5)}) == 5
    for attempt, first, least, most in ((3, 10, 30, 50), (10_000, 10, 225, 375), (9, 600, 450, 750), (7, 0, 0, 0)):
        assert all(least <= retry.backoff(attempt, first) <= most for _ in range(100))
    run = advance(make_run("slow"))
    assert run.wake_at is not None
    assert 28 < (run.wake_at - failures(run)[-1].at).total_seconds() < 52


def test_when_its_attempts_have_run_out_the_run_goes_on_with_the_step_that_catches() -> None:
    run = advance(make_run("catcher"))
    assert (run.status, run.attempts) == ("queued", 1)
    assert advance(run).status == "completed"
    assert trail(run)[1:] == [("recovery", "clever"), ("step", "simple")]
    assert state(run)["plan"] == "simple, because clever: ValueError: too clever"
    assert [failure.error for failure in failures(run)] == ["ValueError: too clever"] * 2
    assert run.gates.count() == 0
    caught = Checkpoint.objects.get(run=run, kind="recovery")
    assert (caught.next_step, caught.input_digest) == ("simple", None)
    reader = ann(run.team)
    row = next(row for row in build(scene_of(read_again(run, reader), reader).story).rows if row.name == "Clever")
    said = [remark.text for remark in row.remarks]
    assert (row.mark.word, said[-1]) == ("failed, continued at another step", "the run goes on with “Simple”")
    run = advance(make_run("catcher", mode="fine"))
    assert trail(run)[1:] == [("step", "clever"), ("step", "polish"), ("step", "simple")]


def test_a_step_that_kills_its_workers_is_caught_too() -> None:
    run = make_run("catcher", mode="fine")
    Run.objects.filter(pk=run.pk).update(attempts=2)  # of which no worker came back
    assert (advance(run).status, trail(run)[1]) == ("completed", ("recovery", "clever"))
    assert "2 workers died in this step" in failures(run)[0].error


def test_a_worker_killed_in_a_catch_leaves_one_failure_and_one_catch(workers: KillableWorkers) -> None:
    run = make_run("catcher", mode="hopeless")
    workers.kill(run, "after_save@clever")
    go_on(run)
    assert (run.status, len(failures(run))) == ("completed", 1)
    assert trail(run)[1:] == [("recovery", "clever"), ("step", "simple")]


def test_a_step_that_ran_as_often_as_its_guard_allows_asks_a_person(ledger: Path) -> None:
    run = advance_to_rest(make_run("circler", ledger=str(ledger)))
    assert (run.status, state(run)["times"]) == ("waiting", 3)
    gate = open_gate(run)
    assert (gate.kind, gate.step) == ("recovery", "hop")
    assert gate.standing().card.question["text"].startswith("“Hop” has run 3 times on this path")  # type: ignore[index]
    answer(run, "retry")
    assert advance_to_rest(run).status == "waiting"
    assert state(run)["times"] == 6  # a person lets it run as often anew
    answer(run, "skip")
    advance_to_rest(run)
    assert trail(run)[14:16] == [("recovery", "hop"), ("step", "turn")]  # and may have the run go on without it
    run = advance_to_rest(make_run("circler", ledger=str(ledger), until=3))
    assert (run.status, state(run)["times"], run.gates.count()) == ("completed", 3, 0)
    # One whose catch leads back to it is guarded too.
    run = advance_to_rest(make_run("circler", ledger=str(ledger), mode="catch"))
    assert (run.status, open_gate(run).step, len(failures(run))) == ("waiting", "fall", 2)


def test_an_effect_is_guarded_before_it_is_done_once_more(ledger: Path) -> None:
    run = advance_to_rest(make_run("circler", ledger=str(ledger), mode="act"))
    assert (run.status, open_gate(run).step) == ("waiting", "act")
    assert ledger.read_text() == "act 0\nact 1\n"
    answer(run, "retry")
    advance_to_rest(run)
    assert ledger.read_text() == "act 0\nact 1\nact 2\nact 3\n"


def test_a_worker_killed_when_its_guard_asks_asks_once(ledger: Path, workers: KillableWorkers) -> None:
    run = make_run("circler", ledger=str(ledger))
    workers.kill(run, "after_gate@hop")
    go_on(run)
    assert (run.status, run.gates.count(), state(run)["times"]) == ("waiting", 1, 3)


def asked(ledger: Path) -> list[str]:
    return [line.removeprefix("ask ") for line in ledger.read_text().splitlines()]


def test_a_call_is_made_once_in_a_step_an_effect_and_a_gate_and_gives_what_json_gives(ledger: Path) -> None:
    run = advance(make_run("caller", ledger=str(ledger)))
    assert (state(run)["answer"], state(run)["kinds"]) == ([1, ["why?"]], ["list"])
    decide(run)
    advance(run)
    assert advance(run).status == "completed"
    assert asked(ledger) == ["why?", "title", "plan"]
    assert Memo.objects.filter(run=run).count() == 3
    ledger.unlink()
    run = advance(make_run("caller", ledger=str(ledger), mode="twice"))  # another salt is another call
    assert state(run)["answer"] == [[1, ["why?"]], [1, ["why?"]], [2, ["why?"]]]
    decide(run, "reject", then="back", back_to="think")  # who is sent back calls anew
    advance(run)
    assert asked(ledger).count("why?") == 4


def test_a_step_that_is_tried_again_finds_what_it_called_before(ledger: Path, workers: KillableWorkers) -> None:
    run = advance_to_rest(make_run("caller", ledger=str(ledger), mode="raise"))
    assert (len(failures(run)), run.status) == (2, "waiting")
    assert (asked(ledger), state(run)["answer"]) == (["why?", "title"], [1, ["why?"]])
    ledger.unlink()
    run = make_run("caller", ledger=str(ledger))
    workers.kill(run, "after_step@think")
    go_on(run)
    assert (asked(ledger), state(run)["answer"]) == (["why?", "title"], [1, ["why?"]])


@pytest.mark.parametrize(("mode", "times"), [("hopeless", [1, 1]), ("refuse", [2, 3])])
def test_who_has_it_tried_again_has_it_called_again_where_its_output_was_refused(
    mode: str, times: list[int], ledger: Path, tmp_path: Path
) -> None:
    """A refused output is not made of the same call again."""
    run = advance(make_run("caller", ledger=str(ledger), mode=mode, flag=str(tmp_path / "flag")))
    assert (run.status, asked(ledger).count("why?")) == ("waiting", times[0])
    (tmp_path / "flag").touch()
    answer(run, "retry")
    advance(run)
    assert (open_gate(run).step, asked(ledger).count("why?")) == ("review", times[1])


WRONG = {
    "object": "once('model'): /args/1 is a object, which JSON cannot say",
    "no json": "once('object'): the result is a object, which JSON cannot say",
    "no name": "once() takes a name of 1 to 100 printable characters",
    "large": "once('large'): the result has 2,002 bytes; 1,500 are the most. Return less",
}


def test_what_cannot_be_kept_is_refused_at_once_and_not_tried_again(ledger: Path, settings: Any) -> None:
    settings.HOLDPOINT_STATE_LIMIT = 1500
    for mode, words in WRONG.items():
        run = advance(make_run("caller", ledger=str(ledger), mode=mode))
        assert (run.status, len(failures(run))) == ("waiting", 1)
        assert words in failures(run)[0].error


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


def test_a_call_outside_a_running_step_is_refused_and_so_is_a_validators(ledger: Path) -> None:
    agent = agent_named("caller").agent
    with pytest.raises(AgentError, match="outside a running step"):
        agent(None, 1).once("call", str)  # type: ignore[arg-type]
    plan = registry.register(agent_named("caller"))
    with pytest.raises(AgentError, match="outside a running step"):
        edited_states.redraw(plan, "review", {"ledger": "", "answer": 1}, {})
    run = make_run("drafter", ledger=str(ledger), mode="remember")
    assert advance(run).status == "waiting"
    assert "once('call') was called outside a running step" in failures(run)[0].error


def test_an_alarm_that_rings_as_it_is_blocked_does_not_stay_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter handles a signal that came before inside the very call that blocks it, after the mask is set."""
    real = signal.pthread_sigmask

    def blocking(how: int, mask: Iterable[int]) -> set[int]:
        before = real(how, mask)
        if how == signal.SIG_BLOCK and signal.SIGALRM in mask:
            raise alarms.timed_out(1)
        return before

    monkeypatch.setattr(signal, "pthread_sigmask", blocking)
    try:
        with pytest.raises(StepTimeout), alarms.unalarmed():
            raise AssertionError("the block was entered")
        assert signal.SIGALRM not in real(signal.SIG_BLOCK, ())
    finally:
        real(signal.SIG_UNBLOCK, {signal.SIGALRM})
