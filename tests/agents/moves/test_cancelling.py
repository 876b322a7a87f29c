"""Cancelling a run while its gate is being decided."""

from __future__ import annotations

from functools import partial

from agents.moves.cancel import cancel
from approvals.errors import GateWithdrawn
from approvals.models import Decision, Outcome
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.factories import ann, bob, change_gate, decide, make_gate, make_run, make_team
from tests.harness.racing_threads import meet_lock, race


def test_a_cancellation_and_a_decision_that_race_never_wait_for_each_other() -> None:
    """The one locked the run before the gate, the other the gate before the run: PostgreSQL ended one of them."""
    team = make_team()
    reviewer, owner = ann(team), bob(team)
    for _ in range(20):
        gate = make_gate(team=team)
        seen = bytes(gate.standing().digest)
        run = Run.objects.get(pk=gate.run_id)
        decided, ended = race(
            [partial(decide, gate, reviewer, seen=seen), partial(cancel, run, by=owner, reason="Not needed")]
        )
        assert ended is True
        assert Run.objects.get(pk=run.pk).status == "cancelled"
        outcome = Outcome.objects.get(gate=gate)
        if isinstance(decided, Decision):
            assert outcome.kind == "approved"
        else:
            assert isinstance(decided, GateWithdrawn)
            assert (outcome.kind, outcome.grants.count()) == ("withdrawn", 0)


def test_a_cancellation_that_meets_a_decision_under_way_holds_nothing_that_the_decision_needs() -> None:
    team = make_team()
    gate = make_gate(team=team)
    run, owner = Run.objects.get(pk=gate.run_id), bob(team)
    ended = meet_lock(gate.move, partial(cancel, run, by=owner, reason=""), then=partial(gate.run.wake, SYSTEM))
    assert ended is True
    assert Outcome.objects.get(gate=gate).kind == "withdrawn"
    assert Run.objects.get(pk=run.pk).status == "cancelled"
    change_gate(gate)  # it moved without the event that a decision writes


def test_a_gate_that_opens_while_its_run_is_cancelled_is_withdrawn_with_it() -> None:
    team = make_team()
    run, owner = make_run(team=team, first_step="review"), bob(team)
    assert meet_lock(partial(make_gate, run=run), partial(cancel, run, by=owner, reason="")) is True
    assert Outcome.objects.get(gate__run=run).kind == "withdrawn"
    assert Run.objects.get(pk=run.pk).status == "cancelled"
