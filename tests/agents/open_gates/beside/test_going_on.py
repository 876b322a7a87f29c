"""Runs that go on beside open gates: in loops, between attempts, past deadlines, with few checkpoints, and pruned."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from agents.models import Effect
from approvals.gates import closing
from approvals.models import Gate
from checkpoints.models import Checkpoint
from tests.checkpoints.retention.pruned_runs import keep, pruned
from tests.factories import make_policy, make_team
from tests.factories.driven_runs import advance, advance_to_rest, failures, make_run, state, trail

from ..launches import decide, done, gate, open_steps


def test_a_gate_that_is_open_is_not_asked_again_before_it_is_decided(ledger: Path) -> None:
    run = advance(make_run("repeating", ledger=str(ledger)))
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "agree", ["agree"])
    decide(run, "agree")
    run = advance_to_rest(run)
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "send", ["agree"])
    assert done(ledger) == ["work 0", "work 1"]
    decide(run, "agree")
    run = advance_to_rest(run)
    assert (run.status, done(ledger)) == ("completed", ["work 0", "work 1", "send 1"])
    [sent] = Effect.objects.filter(run=run)
    assert sent.grant is not None
    assert sent.grant.outcome.gate == gate(run, "agree")


def test_an_effect_that_is_tried_again_keeps_its_permission_though_a_gate_was_decided_between(ledger: Path) -> None:
    run = advance(make_run("sending", ledger=str(ledger)))
    decide(run, "release")
    run = advance(run)
    assert (run.status, len(done(ledger))) == ("queued", 1)
    decide(run, "agree", "edit", arguments={"note": "m"})
    run = advance_to_rest(run)
    assert (run.status, state(run)["note"]) == ("completed", "m")
    assert (len(done(ledger)), Gate.objects.filter(run=run).count()) == (2, 2)
    assert ("reopen", "send") not in trail(run)


def test_a_deadline_that_approves_lets_the_effect_run_and_one_that_does_not_ends_the_run(ledger: Path) -> None:
    team = make_team()
    make_policy(team, name="default", deadline=timedelta(hours=1), on_expiry="approve")
    run = advance(make_run("sparse", team=team, topic="tea", ledger=str(ledger)))
    closing.pass_deadline(gate(run, "legal"))
    assert closing.expire(gate(run, "legal")) is not None
    run = advance_to_rest(run)
    assert (run.status, open_steps(run), done(ledger)[-1]) == ("waiting", ["pricing"], "publish")
    make_policy(team, name="default", version=2, deadline=timedelta(hours=1))
    closing.pass_deadline(gate(run, "pricing"))
    assert closing.expire(gate(run, "pricing")) is not None
    run = advance_to_rest(run)
    assert (run.status, run.reason) == ("cancelled", "Nobody decided in time")


def test_a_run_with_few_checkpoints_takes_up_each_decision(ledger: Path) -> None:
    run = advance(make_run("sparse", topic="tea", ledger=str(ledger)))
    assert (run.next_step, open_steps(run)) == ("publish", ["pricing", "legal"])
    decide(run, "pricing", "edit", arguments={"price": 12})
    decide(run, "legal")
    run = advance_to_rest(run)
    assert (run.status, state(run)["sent"]) == ("completed", ["charged 12"])
    assert done(ledger) == ["draft", "translate", "publish", "charge 12"]


def test_a_live_run_that_is_pruned_still_waits_for_its_gate(ledger: Path) -> None:
    run = advance(make_run("looping", topic="tea", ledger=str(ledger)))
    keep(run, keep_last=1)
    pruned()
    assert Checkpoint.objects.filter(run=run, kind="asked").exists()
    decide(run, "agree", "edit", arguments={"note": "m"})
    keep(run, keep_last=1)
    run = advance_to_rest(run)
    assert (run.status, state(run)["note"], trail(run)[-1]) == ("completed", "m", ("answered", "agree"))


def test_a_live_run_that_is_pruned_keeps_the_decision_that_allows_an_effect(ledger: Path) -> None:
    run = advance(make_run("sparse", topic="tea", ledger=str(ledger)))
    decide(run, "pricing", "edit", arguments={"price": 12})
    run = advance(run)
    keep(run, keep_last=1)
    pruned()
    decide(run, "legal")
    run = advance_to_rest(run)
    assert (run.status, state(run)["sent"]) == ("completed", ["charged 12"])
    assert done(ledger) == ["draft", "translate", "publish", "charge 12"]


def test_an_answer_gives_a_step_that_fails_its_attempts_once_more(ledger: Path) -> None:
    """So a step that kills its workers starts at most so often for each gate that is answered meanwhile."""
    run = advance(make_run("busy", topic="tea", ledger=str(ledger), does="fail"))
    assert (run.status, run.next_step, run.attempts) == ("queued", "work", 1)
    decide(run, "agree")
    run = advance_to_rest(run)
    assert (run.status, open_steps(run), trail(run)[-1]) == ("waiting", ["work"], ("answered", "agree"))
    assert [each.attempt for each in failures(run)] == [1, 1, 2]
