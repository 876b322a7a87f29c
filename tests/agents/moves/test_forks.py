"""A fork begins from a checkpoint with other input or version, asks before it takes effects over, and goes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.models import Effect
from agents.moves import fork as forks
from agents.moves import impact
from approvals.consequences.gate import GateImpacts
from approvals.impact import ImpactVerdict
from checkpoints import crash_points
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Checkpoint, Event, Hold, Run
from checkpoints.values.canonical_json import decode_canonical
from tests.agents.moves.moved_runs import after, before, choices, die, edit, fates, lines, rewind
from tests.agents.moves.test_attacks import left_open
from tests.approvals.impact.property.moves import Answer
from tests.factories import ann, make_user
from tests.factories.driven_runs import advance_to_rest, answer, decide, make_run, open_gate, state, trail
from tests.harness.signed_in_clients import signed_in


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
    assert choices(gate) == ["take", "do_again", "stop"]
    answer(fork, "take")
    advance_to_rest(fork)
    answer(fork, "do_again")
    assert advance_to_rest(fork).status == "completed"
    assert lines(ledger) == ["pay A", "pay B", "pay B"]
    taken, made = Effect.objects.filter(run=fork).order_by("pk")
    assert (taken.taken_from, made.taken_from) == (Effect.objects.filter(run=run).order_by("pk")[0], None)
    assert state(fork)["receipts"][0] == state(run)["receipts"][0]
    event = Event.objects.get(run_id=fork.pk, kind="effect.taken")
    assert decode_canonical(bytes(event.data))["from"] == taken.taken_from_id


def forked(ledger: str) -> tuple[Run, Run]:
    """A run that paid A, and a fork of it that asks whether it takes that over."""
    run = advance_to_rest(make_run("payments", ledger=ledger, people=["A"]))
    return run, advance_to_rest(forks.fork(run, at=1, by=ann(run.team)))


def test_what_a_fork_took_over_neither_of_them_undoes(ledger: str) -> None:
    """The origin undid the payment that its fork had taken over, and the fork went on saying that it was made."""
    run, fork = forked(ledger)
    answer(fork, "take")
    advance_to_rest(fork)
    told = impact.of_edit(run, 1, [{"op": "replace", "path": "/people", "value": []}])
    assert [(row.step, row.verdict) for row in told.ahead if row.effect] == [("pay", ImpactVerdict.CANNOT)]
    edit(run, 1, people=[], seen=told.digest())
    assert advance_to_rest(run).status == "completed"
    assert (lines(ledger), fates(run), fates(fork)) == (["pay A"], [("pay", "kept")], [("pay", "done")])
    edit(fork, 1, people=[])
    assert advance_to_rest(fork).status == "completed"
    assert (lines(ledger), fates(fork)) == (["pay A"], [("pay", "kept")])


def test_a_fork_has_no_permissions_of_the_run_that_it_came_from(ledger: str) -> None:
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    advance_to_rest(run)
    fork = forks.fork(run, at=after(run, "review"), by=make_user("Bob", run.team))
    advance_to_rest(fork)
    told = Answer(open_gate(fork).pk, "do_again").foretell(fork)
    assert (told.asks, told.will) == ("review", ()), "an order to do it once more is no permission"
    answer(fork, "do_again")
    advance_to_rest(fork)
    assert open_gate(fork).step == "review"
    assert lines(ledger, words=1) == ["book", "pay", "tell"]


def sent_again(ledger: str, tmp_path: Path) -> Run:
    """What cannot be undone is done, and a person sent the run back to do it again."""
    run = advance_to_rest(make_run("final", ledger=ledger))
    rewind(run, before(run, "tell"), confirm=True)
    return run


def being_undone(ledger: str, tmp_path: Path) -> Run:
    """A ticket was bought, and nobody knows whether it was sold again."""
    run = advance_to_rest(make_run("trip", ledger=ledger))
    edit(run, 1, mode="skip")
    die(run, "after_undo_intent")
    return run


@pytest.mark.parametrize(
    ("made", "offers"),
    [
        (sent_again, ["take", "do_again", "stop"]),
        (lambda ledger, tmp_path: left_open(ledger, tmp_path / "cut"), ["do_again", "stop"]),
        (being_undone, ["do_again", "stop"]),
    ],
)
def test_a_fork_asks_about_whatever_the_run_that_it_came_from_may_have_done(
    ledger: str, tmp_path: Path, made: Callable[[str, Path], Run], offers: list[str]
) -> None:
    """It did all of this a second time, and asked nobody."""
    run = made(ledger, tmp_path)
    done = lines(ledger)
    fork = forks.fork(run, at=1, by=ann(run.team))
    assert advance_to_rest(fork).status == "waiting"
    assert choices(open_gate(fork)) == offers
    assert lines(ledger) == done


def test_what_was_done_before_a_fork_began_is_kept_where_the_run_that_it_came_from_goes_elsewhere(ledger: str) -> None:
    """The fork's state said that A was paid, and the run that it came from cancelled that."""
    run = advance_to_rest(make_run("payments", ledger=ledger, people=["A", "B"]))
    fork = forks.fork(run, at=after(run, "pay", last=False), by=ann(run.team))
    edit(run, 1, people=[])
    assert advance_to_rest(run).status == "completed"
    assert [line.split("-")[0] for line in lines(ledger)] == ["pay A", "pay B", "cancel B"]
    assert fates(run) == [("pay", "kept"), ("pay", "undone"), ("undo of pay", "done")]
    assert advance_to_rest(fork).status == "completed"
    assert [each[0] for each in state(fork)["receipts"]] == ["A", "B"]


def test_a_fork_may_take_over_what_the_run_that_it_came_from_is_about_to_undo(ledger: str) -> None:
    """That one had looked before the fork took it, and undid it afterwards."""
    run, fork = forked(ledger)
    edit(run, 1, people=[])

    def take(name: str, step: str, value: Any) -> None:
        if name == "before_undo" and fork.status == "waiting":
            answer(fork, "take")
            advance_to_rest(fork)

    crash_points.listen(take)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["pay A"]
    assert (fates(run), fates(fork), fork.status) == ([("pay", "kept")], [("pay", "done")], "completed")


@pytest.mark.parametrize(("then", "ended", "paid"), [("stop", "failed", 1), ("do_again", "completed", 2)])
def test_a_fork_asks_again_where_what_it_was_to_take_over_was_undone_meanwhile(
    ledger: str, then: str, ended: str, paid: int
) -> None:
    """It paid, although a person had said that nothing was to be done."""
    run, fork = forked(ledger)
    answer(fork, "take")
    edit(run, 1, people=[])
    advance_to_rest(run)
    assert advance_to_rest(fork).status == "waiting"
    assert choices(open_gate(fork)) == ["do_again", "stop"]
    assert lines(ledger, words=1) == ["pay", "cancel"]
    answer(fork, then)
    assert advance_to_rest(fork).status == ended
    assert lines(ledger, words=1).count("pay") == paid


def fork_after(run: Run, step: str) -> Run:
    """A fork from what `step` led to, by somebody else than who decides it, at its first question."""
    fork = forks.fork(run, at=after(run, step), by=make_user("Bob", run.team))
    return advance_to_rest(fork)


def timeline_of(run: Run) -> str:
    """The run's page as ann reads it, whose timeline draws every row."""
    response = signed_in(ann(run.team)).get(f"/runs/{run.pk}/")
    assert response.status_code == 200
    return response.content.decode()


def test_a_fork_is_sent_back_to_a_step_that_ran_before_it(ledger: str) -> None:
    """The run failed for it: the checkpoint from which that step had started is one of the run that it came from."""
    run = advance_to_rest(make_run("booking", ledger=ledger))
    fork = fork_after(run, "plan")
    gate = open_gate(fork)
    told = GateImpacts(gate, gate.standing().card, []).back("plan")
    assert [(row.step, row.verdict) for row in told.ahead] == [
        ("plan", ImpactVerdict.WILL), ("review", ImpactVerdict.WILL),
    ]  # fmt: skip
    decide(fork, "reject", then="back", back_to="plan", comment="cheaper")
    advance_to_rest(fork)
    assert trail(fork) == [("fork", "fork"), ("gate", "review"), ("rewind", "review"), ("step", "plan")]
    assert open_gate(fork).title == "Book for 9?"
    assert Checkpoint.objects.get(run=fork, kind="rewind").parent == Checkpoint.objects.get(run=run, seq=1).id
    assert (state(run)["offer"], open_gate(run).title) == (10, "Book for 10?")
    assert verify_run(fork) == verify_run(run) == []
    decide(fork)
    assert advance_to_rest(fork).status == "completed"
    assert lines(ledger, words=2)[0] == "book 9"
    assert f"to 1 of R-{run.pk}" in timeline_of(fork)


def test_an_edit_at_a_gate_that_a_fork_opened_again_asks_anew_from_where_it_first_stood(ledger: str) -> None:
    """The run failed for it, as the gate had first stood at a checkpoint of the run that it came from."""
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    advance_to_rest(run)
    fork = fork_after(run, "book")
    answer(fork, "do_again")
    advance_to_rest(fork)
    decide(fork, "edit", arguments={"offer": 7})
    advance_to_rest(fork)
    assert (fork.status, open_gate(fork).title) == ("waiting", "Book for 7?")
    assert verify_run(fork) == []
    timeline_of(fork)
