"""A fork begins from a checkpoint with other input, configuration or version, and asks before it takes effects over."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from agents import forks
from agents.errors import RewindNotAllowed, RewindRefused
from agents.models import Effect
from checkpoints.models import Hold, Run
from tests.agents.driving import advance_to_rest, answer, decide, make_run, open_gate, state
from tests.factories import ann, eve, make_user

from .moving import after, before, fates, lines


def test_a_fork_with_other_input_reuses_what_the_difference_does_not_touch(ledger: str) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger))
    fork = forks.fork(run, at=1, by=ann(run.team), patch=[{"op": "replace", "path": "/b", "value": 7}])
    assert advance_to_rest(fork).status == "completed"
    assert lines(ledger)[5:] == ["aside 7", "look", "say False"]
    assert (state(fork)["said"], state(run)["said"]) == ("False 8", "False 2")
    assert Hold.objects.standing().filter(run=run, kind="fork").count() == 1


def test_a_fork_asks_before_it_takes_an_effect_over_and_sends_nothing_where_it_does(ledger: str) -> None:
    run = advance_to_rest(make_run("payments", ledger=ledger, people=["A", "B"]))
    fork = forks.fork(run, at=1, by=ann(run.team))
    advance_to_rest(fork)
    gate = open_gate(fork)
    assert (gate.step, gate.kind) == ("pay", "recovery")
    assert [each["id"] for each in gate.standing().card.question["choices"]] == ["take", "do_again", "stop"]  # type: ignore[index]
    answer(fork, "take")
    advance_to_rest(fork)
    answer(fork, "do_again")
    assert advance_to_rest(fork).status == "completed"
    assert lines(ledger) == ["pay A", "pay B", "pay B"]
    taken, made = Effect.objects.filter(run=fork).order_by("pk")
    assert (taken.taken_from, made.taken_from) == (Effect.objects.filter(run=run).order_by("pk")[0], None)
    assert state(fork)["receipts"][0] == state(run)["receipts"][0]


def test_what_a_fork_took_over_is_not_its_own_to_undo(ledger: str) -> None:
    from .moving import edit

    run = advance_to_rest(make_run("payments", ledger=ledger, people=["A"]))
    fork = forks.fork(run, at=1, by=ann(run.team))
    advance_to_rest(fork)
    answer(fork, "take")
    advance_to_rest(fork)
    edit(fork, 1, people=[])
    assert advance_to_rest(fork).status == "completed"
    assert lines(ledger) == ["pay A"]
    assert fates(fork) == [("pay", "kept")]
    assert fates(run) == [("pay", "done")]


def test_a_fork_has_no_permissions_of_the_run_that_it_came_from(ledger: str) -> None:
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    advance_to_rest(run)
    fork = forks.fork(run, at=after(run, "review"), by=make_user("Bob", run.team))
    advance_to_rest(fork)
    answer(fork, "do_again")
    advance_to_rest(fork)
    assert open_gate(fork).step == "review"
    assert lines(ledger, words=1) == ["book", "pay", "tell"]


def test_the_same_key_makes_one_fork(ledger: str) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger))
    key, by = secrets.token_hex(8), ann(run.team)
    assert forks.fork(run, at=1, by=by, key=key) == forks.fork(run, at=1, by=by, key=key)
    assert Run.objects.filter(lineage=run.lineage).count() == 2


def test_a_fork_is_refused_with_a_sentence(ledger: str) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger))
    by = ann(run.team)
    with pytest.raises(RewindNotAllowed):
        forks.fork(run, at=1, by=eve())
    with pytest.raises(RewindRefused, match="no checkpoint 99"):
        forks.fork(run, at=99, by=by)
    with pytest.raises(RewindRefused, match="had ended at checkpoint 6"):
        forks.fork(run, at=6, by=by)
    with pytest.raises(RewindRefused, match="no agent named chain 7"):
        forks.fork(run, at=1, by=by, version="7")
    with pytest.raises(RewindRefused) as refused:
        forks.fork(run, at=1, by=by, patch=[{"op": "replace", "path": "/a", "value": "many"}])
    assert refused.value.errors[0]["pointer"] == "/a"
    assert before(run, "twice") == 1


def test_what_a_fork_stands_on_is_not_pulled_away_by_the_run_that_it_came_from(ledger: str) -> None:
    """The origin undid the payment that its fork had taken over, and the fork went on saying that it was made."""
    from .moving import edit

    run = advance_to_rest(make_run("payments", ledger=ledger, people=["A"]))
    fork = forks.fork(run, at=1, by=ann(run.team))
    advance_to_rest(fork)
    answer(fork, "take")
    advance_to_rest(fork)
    edit(run, 1, people=[])
    assert advance_to_rest(run).status == "completed"
    assert (lines(ledger), fates(run), fates(fork)) == (["pay A"], [("pay", "kept")], [("pay", "done")])


def test_a_fork_asks_also_where_nobody_knows_whether_the_other_run_has_done_it(ledger: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    run = make_run("asker", ledger=ledger, gate=str(gate))
    gate.touch()
    advance_to_rest(run)
    Effect.objects.filter(run=run).update(status="unknown")
    fork = forks.fork(run, at=1, by=ann(run.team))
    advance_to_rest(fork)
    assert [each["id"] for each in open_gate(fork).standing().card.question["choices"]] == ["do_again", "stop"]  # type: ignore[index]
    assert lines(ledger, words=1) == ["send"]
