"""What reviewers add to their approval, and what of it the outcome binds."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from approvals.errors import Invalid
from approvals.gates import closing
from approvals.models import Decision, Gate, Outcome
from checkpoints.values.canonical_json import encode_canonical
from tests.factories import ann, bob, decide, edit_amount, make_policy, make_team, mira
from tests.harness.altered_rows import altered

from .offering_gates import make_observing_gate, make_precondition, said_of

BALANCE = make_precondition()
PRESELECTED = replace(BALANCE, preselected=True)
MOOD = make_precondition("mood", observes="mood", value="calm")
INSISTED = replace(MOOD, required=True)
MANY = ["balance"] * 101


def outcome_of(gate: Gate) -> Outcome:
    return Outcome.objects.get(gate=gate)


def holds(outcome: Outcome) -> bool:
    """Whether the outcome is what its digest says."""
    return bytes(outcome.to_run or b"") == outcome.approved().digest()


def test_an_approval_adds_what_it_names_and_the_outcome_binds_it() -> None:
    gate = make_observing_gate(BALANCE, MOOD)
    decision = decide(gate, ann(gate.team), preconditions=["balance"])
    outcome = outcome_of(gate)
    assert decision.added == outcome.counted == ["balance"]
    assert outcome.approved().preconditions == (BALANCE,)
    assert holds(outcome)


def test_what_the_agent_insists_on_counts_though_nobody_names_it() -> None:
    gate = make_observing_gate(BALANCE, INSISTED)
    decision = decide(gate, ann(gate.team))
    assert (decision.added, outcome_of(gate).counted) == ([], ["mood"])
    assert holds(outcome_of(gate))


def test_an_approval_that_adds_nothing_binds_nothing_of_the_world() -> None:
    gate = make_observing_gate(BALANCE, MOOD)
    decide(gate, ann(gate.team))
    assert outcome_of(gate).approved().preconditions == ()


def test_an_approval_that_says_nothing_keeps_what_the_agent_preselected() -> None:
    gate = make_observing_gate(PRESELECTED, MOOD)
    decision = decide(gate, ann(gate.team))
    assert decision.added == outcome_of(gate).counted == ["balance"]
    assert holds(outcome_of(gate))


def test_what_is_preselected_is_dropped_by_its_name_alone() -> None:
    gate = make_observing_gate(PRESELECTED, MOOD)
    decision = decide(gate, ann(gate.team), dropped=["balance"])
    assert decision.added == outcome_of(gate).counted == []
    assert said_of(gate)["dropped"] == ["balance"]


def test_to_add_another_drops_nothing() -> None:
    gate = make_observing_gate(PRESELECTED, MOOD)
    decide(gate, ann(gate.team), preconditions=["mood"])
    assert outcome_of(gate).counted == ["balance", "mood"]


def test_what_one_of_two_drops_holds_by_the_word_of_the_other() -> None:
    team = make_team()
    gate = make_observing_gate(PRESELECTED, policy=make_policy(team, quorum=2))
    decide(gate, ann(team), dropped=["balance"])
    decide(gate, bob(team))
    assert outcome_of(gate).counted == ["balance"]


def test_what_the_agent_insists_on_is_not_offered_or_is_added_cannot_be_dropped() -> None:
    gate = make_observing_gate(PRESELECTED, INSISTED)
    person = ann(gate.team)
    for dropped, added, place in (
        (["mood"], [], "/dropped/0"),
        (["balance", "more"], [], "/dropped/1"),
        (["balance"], ["balance"], "/dropped/0"),
    ):
        with pytest.raises(Invalid) as refused:
            decide(gate, person, dropped=dropped, preconditions=added)
        assert [each["pointer"] for each in refused.value.errors] == [place]
    with pytest.raises(Invalid, match="it takes no preconditions"):
        decide(gate, person, "reject", dropped=["balance"])


def test_a_rejection_binds_nothing_that_is_preselected() -> None:
    gate = make_observing_gate(PRESELECTED)
    assert decide(gate, ann(gate.team), "reject").added == []


def test_a_deadline_that_approves_drops_nothing() -> None:
    policy = make_policy(make_team(), deadline=dt.timedelta(hours=1), on_expiry="approve")
    gate = make_observing_gate(PRESELECTED, MOOD, policy=policy)
    closing.pass_deadline(gate)
    outcome = closing.expire(Gate.objects.get(pk=gate.pk))
    assert outcome is not None
    assert outcome.counted == ["balance"]
    assert holds(outcome_of(gate))


def test_two_who_each_add_another_get_both() -> None:
    team = make_team()
    gate = make_observing_gate(BALANCE, MOOD, policy=make_policy(team, quorum=2))
    decide(gate, ann(team), preconditions=["mood"])
    decide(gate, bob(team), preconditions=["balance"])
    assert outcome_of(gate).counted == ["balance", "mood"]
    assert holds(outcome_of(gate))


def test_what_somebody_added_goes_with_their_word_where_they_may_no_longer_decide() -> None:
    team = make_team()
    gate = make_observing_gate(BALANCE, MOOD, policy=make_policy(team, quorum=2))
    gone = ann(team)
    decide(gate, gone, preconditions=["balance"])
    gone.groups.clear()
    decide(gate, bob(team), preconditions=["mood"])
    decide(gate, mira(team))
    assert outcome_of(gate).counted == ["mood"]


def test_an_edit_takes_preconditions_and_lets_those_lapse_that_were_added_to_what_it_replaces() -> None:
    team = make_team()
    gate = make_observing_gate(BALANCE, MOOD, policy=make_policy(team, quorum=2))
    decide(gate, ann(team), preconditions=["balance"])
    decide(gate, bob(team), "edit", arguments=edit_amount(gate, "80.00"), preconditions=["mood"])
    assert [each.value for each in Gate.objects.get(pk=gate.pk).standing().card.preconditions] == ["0.00 EUR", "calm"]
    decide(gate, mira(team))
    assert outcome_of(gate).kind == "edited"
    assert outcome_of(gate).counted == ["mood"]


def test_what_is_not_offered_cannot_be_added() -> None:
    gate = make_observing_gate(BALANCE)
    person = ann(gate.team)
    for wrong in (["mood"], ["balance", "Balance"], [""], [["balance"]], [None]):
        with pytest.raises(Invalid, match="offers no such precondition"):
            decide(gate, person, preconditions=wrong)
    assert not Decision.objects.filter(gate=gate).exists()


def test_a_rejection_takes_no_preconditions() -> None:
    gate = make_observing_gate(BALANCE)
    with pytest.raises(Invalid, match="it takes no preconditions"):
        decide(gate, ann(gate.team), "reject", preconditions=["balance"])


def test_a_rejection_binds_none_not_even_those_that_the_agent_insists_on() -> None:
    gate = make_observing_gate(INSISTED)
    decide(gate, ann(gate.team), "reject")
    assert outcome_of(gate).counted == []


def test_a_key_does_not_serve_for_other_preconditions() -> None:
    team = make_team()
    gate = make_observing_gate(BALANCE, MOOD, policy=make_policy(team, quorum=2))
    person = ann(team)
    first = decide(gate, person, key="a click", preconditions=["balance"])
    assert decide(gate, person, key="a click", preconditions=["balance"]) == first
    for other in ([], ["mood"], ["balance", "mood"]):
        with pytest.raises(Invalid, match="sent before with other content"):
            decide(gate, person, key="a click", preconditions=other)


@pytest.mark.parametrize("ids", [[], ["balance"], ["balance", "mood", "more"]])
def test_another_list_in_the_outcomes_row_is_not_what_was_approved(ids: list[str]) -> None:
    gate = make_observing_gate(BALANCE, replace(MOOD, required=True), make_precondition("more"))
    decide(gate, ann(gate.team), preconditions=["balance"])
    with altered(outcome_of(gate), preconditions=encode_canonical(ids)):
        assert not holds(outcome_of(gate))


def test_another_value_in_the_proposals_row_is_not_what_was_approved() -> None:
    gate = make_observing_gate(BALANCE)
    decide(gate, ann(gate.team), preconditions=["balance"])
    standing = gate.standing()
    body = standing.content
    body["preconditions"][0]["value"] = "12.00 EUR"
    with altered(standing, body=encode_canonical(body)):
        assert not holds(outcome_of(gate))


def test_a_deadline_that_approves_keeps_what_people_added_who_were_too_few() -> None:
    team = make_team()
    policy = make_policy(team, quorum=2, deadline=dt.timedelta(hours=1), on_expiry="approve")
    gate = make_observing_gate(BALANCE, INSISTED, policy=policy)
    decide(gate, ann(team), preconditions=["balance"])
    closing.pass_deadline(gate)
    outcome = closing.expire(Gate.objects.get(pk=gate.pk))
    assert outcome is not None
    assert outcome.counted == ["balance", "mood"]
    assert holds(outcome_of(gate))


@pytest.mark.parametrize("named", [{"preconditions": MANY}, {"dropped": MANY}])
def test_a_word_names_so_many_and_no_more(named: dict[str, Any]) -> None:
    """Thirty thousand of each, unknown ones, kept a process busy for many seconds."""
    gate = make_observing_gate(BALANCE)
    with pytest.raises(Invalid) as refused:
        decide(gate, ann(gate.team), **named)
    assert [each["pointer"] for each in refused.value.errors] == [f"/{name}" for name in named]


def test_what_is_dropped_twice_is_said_once() -> None:
    gate = make_observing_gate(PRESELECTED, replace(MOOD, preselected=True))
    decide(gate, ann(gate.team), dropped=["mood", "balance", "mood"])
    assert said_of(gate)["dropped"] == ["balance", "mood"]
