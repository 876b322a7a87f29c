"""Whoever comes second is told so; nobody decides twice."""

from __future__ import annotations

from functools import partial

from approvals.errors import AlreadyDecided, GateExpired, GateWithdrawn, StaleGate
from approvals.gates import closing
from approvals.gates.closing import pass_deadline
from approvals.models import Decision, Gate, Outcome
from checkpoints import actors
from checkpoints.models import Event
from tests.factories import ann, bob, decide, edit_amount, make_gate, make_policy, make_team, make_user
from tests.harness.racing_threads import race


def test_of_twenty_racing_people_one_decides_and_the_others_are_told_who() -> None:
    team = make_team()
    gate = make_gate(team=team)
    people = [make_user(f"Reviewer {number}", team) for number in range(20)]
    seen = bytes(gate.standing().digest)
    results = race([partial(decide, gate, person, seen=seen) for person in people])
    winners = [result for result in results if isinstance(result, Decision)]
    losers = [result for result in results if isinstance(result, AlreadyDecided)]
    assert (len(winners), len(losers)) == (1, 19)
    told = f"{winners[0].user.get_full_name()} already decided this: Approved. No decision is needed any more."
    assert {str(loser) for loser in losers} == {told}
    assert gate.decisions.count() == 1
    assert Outcome.objects.get(gate=gate).grants.count() == 2


def test_every_loser_of_a_race_leaves_a_refusal_in_the_audit() -> None:
    team = make_team()
    gate = make_gate(team=team)
    people = [ann(team), bob(team), make_user("Third Person", team)]
    race([partial(decide, gate, person) for person in people])
    refused = Event.objects.filter(subject=gate.subject, kind="decision.refused")
    assert refused.count() == 2
    assert all(b'"kind":"already_decided"' in bytes(event.data) for event in refused)


def test_an_approval_of_what_an_edit_has_replaced_is_stale_and_says_what_changed() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    seen = bytes(gate.standing().digest)
    editor, approver = ann(team), bob(team)
    decide(gate, editor, "edit", arguments=edit_amount(gate, "80.00"))
    (stale,) = race([partial(decide, gate, approver, seen=seen)])
    assert isinstance(stale, StaleGate)
    assert str(stale).startswith("Ann Okafor edited this gate")
    assert stale.changes == [
        {"of": "action:refund", "pointer": "/amount", "kind": "changed", "before": "120.00", "after": "80.00"}
    ]


def test_an_approval_that_races_an_edit_never_counts_for_what_the_approver_did_not_see() -> None:
    team = make_team()
    policy = make_policy(team, quorum=2)
    editor, approver = ann(team), bob(team)
    for _ in range(6):
        gate = make_gate(policy=policy, team=team)
        seen, arguments = bytes(gate.standing().digest), edit_amount(gate, "80.00")
        race(
            [
                partial(decide, gate, editor, "edit", seen=seen, arguments=arguments),
                partial(decide, gate, approver, seen=seen),
            ]
        )
        counted = Decision.objects.filter(gate=gate, counts=True).values_list("user", "proposal__number")
        assert list(counted) == [(editor.pk, 2)]
        assert Gate.objects.get(pk=gate.pk).status == "open"


def test_two_voters_who_close_a_quorum_at_once_close_it_once() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    people = [make_user(f"Reviewer {number}", team) for number in range(6)]
    results = race([partial(decide, gate, person) for person in people])
    assert sum(isinstance(result, Decision) for result in results) == 2
    assert Outcome.objects.get(gate=gate).decisions.count() == 2


def test_a_decision_and_the_expiry_that_race_end_in_one_outcome_and_after_the_deadline_the_decision_loses() -> None:
    team = make_team()
    person = ann(team)
    gate = make_gate(team=team)
    pass_deadline(gate)
    expired, refused = race([partial(closing.expire, gate), partial(decide, gate, person)])
    assert isinstance(refused, GateExpired)
    assert expired.kind == "expired"
    assert Outcome.objects.get(gate=gate).kind == "expired"


def test_a_decision_and_a_withdrawal_that_race_end_in_one_outcome() -> None:
    team = make_team()
    person = ann(team)
    for _ in range(4):
        gate = make_gate(team=team)
        decided, withdrawn = race(
            [
                partial(decide, gate, person),
                partial(closing.withdraw, gate, by=actors.SYSTEM, reason="the run went another way"),
            ]
        )
        kind = Outcome.objects.get(gate=gate).kind
        if isinstance(decided, Decision):
            assert (kind, withdrawn) == ("approved", None)
        else:
            assert kind == "withdrawn"
            assert isinstance(decided, GateWithdrawn)
            assert "the run went another way" in str(decided)
