"""A quorum is distinct people who agree on one digest, all of whom may decide when it closes."""

from __future__ import annotations

import pytest

from approvals.errors import AlreadySaid, NotAllowed
from approvals.models import Decision, Gate, Outcome
from checkpoints.models import Event
from tests.factories import ann, bob, decide, edit_amount, make_gate, make_policy, make_team, mira, waiting


def test_two_of_two_with_an_edit_by_the_second_asks_the_first_again_and_runs_the_edit() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    first, second = ann(team), bob(team)
    decide(gate, first)
    assert gate.pk not in waiting(first)
    decide(gate, second, "edit", arguments=edit_amount(gate, "80.00"), comment="The shop's limit")
    assert Gate.objects.get(pk=gate.pk).status == "open"
    assert gate.pk in waiting(first)
    assert gate.pk not in waiting(second)
    decide(gate, first)
    outcome = Outcome.objects.get(gate=gate)
    assert outcome.kind == "edited"
    assert outcome.state_patch == [{"op": "replace", "path": "/proposal/amount", "value": "80.00"}]
    assert outcome.approved().actions[0].arguments["amount"] == "80.00"
    assert bytes(outcome.to_run or b"") == outcome.approved().digest()
    assert {vote.user_id for vote in outcome.decisions.all()} == {first.pk, second.pk}


def test_an_edit_lets_the_earlier_approvals_lapse_and_says_how_many() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=3))
    decide(gate, ann(team))
    decide(gate, bob(team))
    decide(gate, mira(team), "edit", arguments=edit_amount(gate, "80.00"))
    assert list(Decision.objects.filter(gate=gate).order_by("pk").values_list("counts", flat=True)) == [
        False,
        False,
        True,
    ]
    assert b'"lapsed":2' in bytes(Event.objects.get(subject=gate.subject, kind="gate.edited").data)


def test_the_same_person_counts_once() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    person = ann(team)
    decide(gate, person)
    with pytest.raises(AlreadySaid, match="another person must approve too"):
        decide(gate, person)
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_a_voter_who_left_the_group_does_not_count_when_the_quorum_closes() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    gone = ann(team)
    decide(gate, gone)
    gone.groups.clear()
    decide(gate, bob(team))
    assert Gate.objects.get(pk=gate.pk).status == "open"
    assert f'"users":["user:{gone.pk}"]'.encode() in bytes(
        Event.objects.get(subject=gate.subject, kind="gate.lapsed").data
    )
    decide(gate, mira(team))
    assert gone.pk not in Outcome.objects.get(gate=gate).decisions.values_list("user", flat=True)


def test_a_voter_whose_account_was_switched_off_does_not_count_and_may_speak_again_later() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    person = ann(team)
    decide(gate, person)
    person.is_active = False
    person.save()
    decide(gate, bob(team))
    with pytest.raises(NotAllowed, match="switched off"):
        decide(gate, person)
    person.is_active = True
    person.save()
    decide(gate, person)
    assert Outcome.objects.get(gate=gate).kind == "approved"


def test_one_rejection_closes_a_gate_that_others_have_approved() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=3))
    decide(gate, ann(team))
    decide(gate, bob(team), "reject", comment="Not ours")
    outcome = Outcome.objects.get(gate=gate)
    assert (outcome.kind, outcome.then, outcome.words) == ("rejected", "stop", "Not ours")
    assert outcome.to_run is None
    assert not outcome.grants.exists()


def test_whoever_approved_may_take_it_back_by_a_rejection_while_the_gate_is_open() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    person = ann(team)
    decide(gate, person)
    decide(gate, person, "reject", then="back", comment="Look again")
    outcome = Outcome.objects.get(gate=gate)
    assert (outcome.kind, outcome.then, outcome.back_to) == ("rejected", "back", "propose")
    assert outcome.decisions.get().verdict == "reject"
