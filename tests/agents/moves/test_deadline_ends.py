"""What a deadline does where nobody answers: expire, stop, or roll back, as the policy or one of its rules says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from approvals.consequences.gate import GateImpacts
from approvals.gates import closing
from approvals.models import Gate, Outcome
from checkpoints.models import Run
from tests.agents.moves.moved_runs import die, fates, lines
from tests.factories import make_policy, make_team
from tests.factories.driven_runs import advance_to_rest, make_run, open_gate


def expired(ledger: str, then: str, **policy: Any) -> Run:
    team = make_team()
    make_policy(team, name="default", deadline=timedelta(hours=1), **{"on_expiry": then, **policy})
    run = advance_to_rest(make_run("deposit", team=team, ledger=ledger))
    gate = open_gate(run)
    closing.pass_deadline(gate)
    assert closing.expire(Gate.objects.get(pk=gate.pk)) is not None
    return run


def kept(run: Run) -> tuple[str, str, str]:
    outcome = Outcome.objects.get(gate__run=run)
    return run.status, outcome.kind, outcome.then


@pytest.mark.parametrize("then", ["expire", "escalate"])
def test_it_expires_and_the_agent_goes_on_where_it_has_a_way(ledger: str, then: str) -> None:
    """Escalation asks the next group before; after the last one the gate expires."""
    run = advance_to_rest(expired(ledger, then))
    assert kept(run) == ("completed", "expired", "")
    assert lines(ledger, words=1) == ["pay"]


def test_it_stops_although_the_agent_has_a_way(ledger: str) -> None:
    run = advance_to_rest(expired(ledger, "stop"))
    assert kept(run) == ("cancelled", "expired", "stop")
    assert (run.reason, lines(ledger, words=1)) == ("Nobody decided in time", ["pay"])


def test_it_is_rolled_back_and_what_it_did_is_undone_once(ledger: str) -> None:
    run = advance_to_rest(expired(ledger, "rollback"))
    assert kept(run) == ("cancelled", "expired", "rollback")
    assert (run.reason, lines(ledger, words=1)) == ("Nobody decided in time", ["pay", "give_back"])
    assert fates(run)[0] == ("pay", "undone")


@pytest.mark.parametrize("point", ["before_outcome", "after_save", "after_outcome", "before_settle"])
def test_a_worker_that_dies_on_the_way_rolls_back_once(ledger: str, point: str) -> None:
    run = expired(ledger, "rollback")
    die(run, point)
    assert kept(advance_to_rest(run)) == ("cancelled", "expired", "rollback")
    assert lines(ledger, words=1) == ["pay", "give_back"]


def test_the_impact_says_beforehand_what_a_rollback_undoes(ledger: str) -> None:
    team = make_team()
    make_policy(team, name="default", deadline=timedelta(hours=1), on_expiry="rollback")
    gate = open_gate(advance_to_rest(make_run("deposit", team=team, ledger=ledger)))
    standing = gate.standing()
    future = GateImpacts(gate, standing.card, standing.state_patch)
    told = future.expire(closing.deadline_stops(gate, standing))
    assert [row.step for row in told.undone] == ["pay"]
    assert [row.step for row in told.will] == []
    assert [row.step for row in future.expire().will] == ["remind"]


def test_a_rule_says_it_for_some(ledger: str) -> None:
    rules = [{"name": "all", "when": 'agent == "deposit"', "require": {"on_expiry": "stop"}}]
    assert kept(advance_to_rest(expired(ledger, "expire", rules=rules))) == ("cancelled", "expired", "stop")


@pytest.mark.parametrize(
    ("own", "rule", "kind"),
    [("expire", "approve", "approved"), ("approve", "expire", "expired"), ("approve", None, "expired")],
)
def test_only_that_word_approves_and_never_by_a_rule_that_cannot_be_evaluated(
    ledger: str, own: str, rule: str | None, kind: str
) -> None:
    when = "true" if rule else "amount < 50"
    rules = [{"name": "some", "when": when, "require": {"on_expiry": rule or "approve"}}]
    run = advance_to_rest(expired(ledger, own, rules=rules))
    assert kept(run)[1] == kind
