"""A run of an agent of this server that may not ask now waits in the queue, and loses nothing."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F

from agents.runner import engine
from approvals.models import Gate, Policy
from checkpoints.models import Run
from tests.factories import make_policy, make_team
from tests.factories.driven_runs import advance, decide, failures, make_run, open_gate

AGENT = "payer"


def test_a_run_beyond_the_cap_waits_with_a_reason_and_asks_when_it_may() -> None:
    team = make_team()
    policy = make_policy(team, name="default")
    Policy.objects.filter(pk=policy.pk).update(hourly=1)
    first, second = (make_run(AGENT, team=team, amount="5.00") for _ in range(2))
    assert advance(first).status == Run.Status.WAITING
    for _ in range(6):  # more often than a step may fail
        assert advance(second).status == Run.Status.QUEUED
    assert "has asked 1 gates within an hour" in second.reason
    assert second.wake_at is not None
    assert second.wake_at - open_gate(first).opened_at == timedelta(hours=1)
    assert not engine.advance(second.pk), "it is not woken before that"
    assert second.attempts == 0
    assert failures(second) == []
    Gate.objects.filter(run=first).update(opened_at=F("opened_at") - timedelta(hours=1))
    assert advance(second).status == Run.Status.WAITING
    assert open_gate(second).kind == Gate.Kind.REVIEW


def test_what_was_rejected_twice_waits_for_its_pause() -> None:
    team = make_team()
    runs = [make_run(AGENT, team=team, amount="5.00") for _ in range(3)]
    for run in runs[:2]:
        advance(run)
        decide(run, "reject", then="stop")
        advance(run)
    assert advance(runs[2]).status == Run.Status.QUEUED
    assert "The same was rejected 2 times" in runs[2].reason
