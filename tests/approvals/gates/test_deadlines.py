"""A deadline is the database's, and silence approves only where the policy says so in that word."""

from __future__ import annotations

import datetime as dt

import pytest

from approvals.errors import GateExpired
from approvals.gates import closing
from approvals.gates.closing import pass_deadline
from approvals.models import Gate, Outcome
from checkpoints.models import Event
from tests.factories import ann, bob, change_gate, decide, edit_amount, make_gate, make_policy, make_team, waiting
from tests.harness.racing_threads import meet_lock
from tests.harness.signed_in_clients import signed_in

HOUR = dt.timedelta(hours=1)


def test_a_deadline_is_counted_from_the_opening() -> None:
    gate = make_gate(policy=make_policy(deadline=HOUR))
    assert gate.deadline is not None
    assert gate.deadline - gate.opened_at == HOUR
    assert make_gate().deadline is None


def test_a_decision_after_the_deadline_loses_though_nothing_has_swept_the_gate() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, deadline=HOUR, on_expiry="approve"))
    person = ann(team)
    pass_deadline(gate)
    assert gate.pk not in waiting(person)
    for verdict in ("approve", "reject"):
        with pytest.raises(GateExpired, match="deadline has passed"):
            decide(gate, person, verdict)
    assert not gate.decisions.exists()
    assert Event.objects.filter(subject=gate.subject, kind="decision.refused").count() == 2


def test_a_decision_that_waited_for_the_gate_past_the_deadline_loses() -> None:
    team = make_team()
    gate = make_gate(team=team)
    person = ann(team)
    late = meet_lock(lambda: pass_deadline(gate), lambda: decide(gate, person))
    assert isinstance(late, GateExpired)
    assert not gate.decisions.exists()


def test_nobody_in_time_is_expired_and_not_rejected_and_the_run_is_woken_to_hear_it() -> None:
    gate = make_gate(policy=make_policy(deadline=HOUR))
    assert closing.expire(gate) is None
    pass_deadline(gate)
    assert Gate.objects.overdue().filter(pk=gate.pk).exists()
    outcome = closing.expire(gate)
    assert outcome is not None
    assert (outcome.kind, outcome.to_run, outcome.grants.count()) == ("expired", None, 0)
    gate = Gate.objects.get(pk=gate.pk)
    assert (gate.status, gate.run.status) == ("expired", "queued")
    assert gate.closed_at is not None
    assert Event.objects.filter(subject=gate.subject, kind="gate.expired", actor="system").count() == 1


def test_an_expiry_happens_once() -> None:
    gate = make_gate(policy=make_policy(deadline=HOUR))
    pass_deadline(gate)
    assert closing.expire(gate)
    assert closing.expire(gate) is None
    assert not Gate.objects.overdue().filter(pk=gate.pk).exists()


def test_a_policy_that_approves_on_expiry_gives_the_grants_and_says_that_the_system_did() -> None:
    gate = make_gate(policy=make_policy(deadline=HOUR, on_expiry="approve"))
    pass_deadline(gate)
    outcome = closing.expire(gate)
    assert outcome is not None
    assert (outcome.kind, outcome.by, outcome.decisions.count()) == ("approved", "system", 0)
    assert bytes(outcome.to_run or b"") == outcome.approved().digest()
    assert sorted(outcome.grants.values_list("effect", flat=True)) == ["pay", "reply"]
    assert Gate.objects.get(pk=gate.pk).status == "expired"


def test_approval_on_expiry_never_approves_what_one_person_changed() -> None:
    """One of two people edited the amount and lost the account; the deadline then paid what nobody had agreed to."""
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2, deadline=HOUR, on_expiry="approve"))
    decide(gate, ann(team), "edit", arguments=edit_amount(gate, "80.00"))
    pass_deadline(gate)
    page = signed_in(bob(team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "approved automatically" not in page
    outcome = closing.expire(gate)
    assert outcome is not None
    assert (outcome.kind, outcome.grants.count(), outcome.to_run) == ("expired", 0, None)


def test_approval_on_expiry_holds_only_while_the_newest_version_of_the_policy_still_says_so() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, deadline=HOUR, on_expiry="approve"))
    make_policy(team, deadline=HOUR, version=2)
    pass_deadline(gate)
    outcome = closing.expire(gate)
    assert outcome is not None
    assert (outcome.kind, outcome.grants.count()) == ("expired", 0)


def test_approval_on_expiry_ends_with_a_newer_rule_of_the_policy() -> None:
    """The policy still approved at its deadline, and only its new rule said otherwise: the gate was approved."""
    team = make_team()
    gate = make_gate(policy=make_policy(team, deadline=HOUR, on_expiry="approve"))
    rule = {"name": "never", "when": "true", "require": {"on_expiry": "expire"}}
    make_policy(team, deadline=HOUR, on_expiry="approve", rules=[rule], version=2)
    pass_deadline(gate)
    outcome = closing.expire(gate)
    assert outcome is not None
    assert (outcome.kind, outcome.grants.count()) == ("expired", 0)


def test_approval_on_expiry_never_approves_what_somebody_rejected_though_their_vote_lapsed() -> None:
    """The one who said no left the team, their no lapsed with the next vote, and the deadline then approved."""
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2, denials=2, deadline=HOUR, on_expiry="approve"))
    person = ann(team)
    decide(gate, person, "reject")
    person.groups.clear()
    decide(gate, bob(team))
    assert not gate.decisions.filter(verdict="reject", counts=True).exists()
    pass_deadline(gate)
    outcome = closing.expire(gate)
    assert outcome is not None
    assert (outcome.kind, outcome.grants.count()) == ("expired", 0)


def test_a_deadline_that_somebody_wrote_into_the_row_approves_nothing() -> None:
    gate = make_gate(policy=make_policy(deadline=HOUR, on_expiry="approve"))
    Gate.objects.filter(pk=gate.pk).update(deadline=gate.opened_at)
    outcome = closing.expire(gate)
    assert outcome is not None
    assert (outcome.kind, outcome.grants.count()) == ("expired", 0)
    change_gate(gate)


def test_approval_on_expiry_never_answers_a_question() -> None:
    gate = make_gate(policy=make_policy(deadline=HOUR, on_expiry="approve"), kind="recovery")
    pass_deadline(gate)
    outcome = closing.expire(gate)
    assert outcome is not None
    assert (outcome.kind, outcome.grants.count()) == ("expired", 0)


def test_a_gate_that_was_decided_in_time_does_not_expire() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, deadline=HOUR))
    decide(gate, bob(team))
    pass_deadline(gate)
    assert closing.expire(gate) is None
    assert Outcome.objects.get(gate=gate).kind == "approved"
