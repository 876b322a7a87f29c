"""The proposal changes while somebody edits: their draft is merged, a conflict is shown, and nothing typed is lost."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.forms.texts import as_json
from approvals.models import Draft, Gate, Outcome
from approvals.presentation.decision_form import conflicts, whole_state
from approvals.presentation.decision_form.conflicts import OpenConflict
from approvals.schema import redact
from tests.factories import ann, bob, decide, edit_amount, make_card, make_gate, make_policy, make_team
from tests.harness.signed_in_clients import form_of, post, signed_in

AMOUNT, REASON = "args.refund/amount", "args.refund/reason"


def keep(user: Any, gate: Gate, form: dict[str, str]) -> Any:
    return signed_in(user).post(f"/gates/{gate.pk}/drafts/", form, HTTP_ACCEPT="application/json")


def page_of(user: Any, gate: Gate) -> str:
    return signed_in(user).get(f"/gates/{gate.pk}/").content.decode()


@pytest.fixture
def gate() -> Gate:
    """A gate that two people have to approve."""
    return make_gate(policy=make_policy(make_team(), quorum=2))


def test_a_field_that_only_i_changed_stays_mine_and_one_that_only_they_changed_is_theirs(gate: Gate) -> None:
    mine = ann(gate.team)
    arguments = gate.standing().card.actions[0].arguments
    other = next(name for name, value in arguments.items() if name != "amount" and isinstance(value, str))
    keep(mine, gate, form_of(gate, "edit", **{f"args.refund/{other}": "my own words"}))
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "90.00"))
    page = page_of(mine, gate)
    assert "my own words" in page
    assert "90.00" in page
    assert "conflicts-title" not in page


def test_a_conflict_shows_both_values_and_blocks_until_one_is_chosen(gate: Gate) -> None:
    mine = ann(gate.team)
    keep(mine, gate, form_of(gate, "edit", **{AMOUNT: "80.00"}))
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "90.00"))
    page = page_of(mine, gate)
    assert "Your draft and the new version differ" in page
    assert f'name="conflict.{AMOUNT}" value="80.00"' in page
    gate.refresh_from_db()
    sent = {AMOUNT: "80.00", f"conflict.{AMOUNT}": "80.00"}
    refused = post(mine, gate, form_of(gate, "edit", **sent))
    assert refused.status_code == 422
    said = refused.content.decode()
    assert "Choose whose value counts." in said
    assert f'name="conflict.{AMOUNT}" value="80.00"' in said
    keep(mine, gate, form_of(gate, "edit", **sent))
    assert f'name="conflict.{AMOUNT}" value="80.00"' in page_of(mine, gate)  # a reload asks again
    taken = post(mine, gate, form_of(gate, "edit", **sent, **{f"counts.{AMOUNT}": "mine"}))
    assert taken.status_code == 303
    assert gate.proposals.latest("number").card.actions[0].arguments["amount"] == "80.00"


def test_taking_theirs_approves_the_version_as_it_is(gate: Gate) -> None:
    mine = ann(gate.team)
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "90.00"))
    gate.refresh_from_db()
    sent = {AMOUNT: "80.00", f"conflict.{AMOUNT}": "80.00", f"counts.{AMOUNT}": "theirs"}
    assert post(mine, gate, form_of(gate, "approve", **sent)).status_code == 303
    outcome = Outcome.objects.get(gate=gate)
    assert b"90.00" in bytes(outcome.arguments)


def test_a_decision_that_came_too_late_is_merged_too(gate: Gate) -> None:
    mine = ann(gate.team)
    late = form_of(gate, "edit", **{AMOUNT: "80.00"})
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "90.00"))
    refused = post(mine, gate, late)
    assert refused.status_code == 409
    assert f'name="conflict.{AMOUNT}" value="80.00"' in refused.content.decode()


def test_an_undecided_conflict_is_no_empty_draft_and_stops_no_rejection(gate: Gate) -> None:
    mine = ann(gate.team)
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "90.00"))
    gate.refresh_from_db()
    lost = {"conflict.args.gone/text": "what I wrote"}
    keep(mine, gate, form_of(gate, "", **lost))
    assert not Draft.objects.get(gate=gate).empty
    page = page_of(mine, gate)
    assert "what I wrote" in page
    assert "has no such field any more" in page
    assert post(mine, gate, form_of(gate, "approve", **lost)).status_code == 422
    assert post(mine, gate, form_of(gate, "reject", **lost, feedback="No.", then="stop")).status_code == 303


def test_a_text_for_an_item_that_is_gone_opposes_no_field() -> None:
    gone = {"args.refund/lines/~gone1/count": OpenConflict(mine="5")}
    [found] = conflicts.shown(gone, [])
    assert (found.label, found.mine, found.theirs) == ("lines 2 count", "5", None)
    assert [each["message"] for each in conflicts.undecided(gone, make_card())] == [str(conflicts.CHOOSE)]


def test_the_whole_state_is_merged_member_by_member_and_opposed_ones_are_chosen() -> None:
    gate = make_gate(policy=make_policy(make_team(), quorum=2, whole_state=True))
    mine, state = ann(gate.team), gate.saved.state
    typed = {**state, "proposal": {**state["proposal"], "amount": "80.00"}, "order": {"number": "A-2"}}
    keep(mine, gate, form_of(gate, "edit", state=as_json(typed)))
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "90.00"))
    page = page_of(mine, gate)
    assert 'name="conflict.state/proposal/amount"' in page
    assert 'name="conflict.state/order' not in page
    gate.refresh_from_db()
    sent = {"state": as_json(typed), "conflict.state/proposal/amount": '"80.00"'}
    assert post(mine, gate, form_of(gate, "edit", **sent)).status_code == 422
    taken = post(mine, gate, form_of(gate, "edit", **sent, **{"counts.state/proposal/amount": "theirs"}))
    assert taken.status_code == 303, taken.content.decode()
    assert gate.proposals.latest("number").card.actions[0].arguments["amount"] == "90.00"


@pytest.mark.parametrize(
    ("typed", "at", "state", "settled"),
    [
        ({"b": 2}, "/a", {"a": 9, "b": 1}, {"a": 9, "b": 2}),  # I took it out, they changed it
        ({"a": 5, "b": 2}, "/a", {"a": 9, "b": 1}, {"a": 9, "b": 2}),
        ({"a": 5, "b": 2}, "/a", {"b": 1}, {"b": 2}),  # they took it out
        ({"in": {}}, "/in/a", {"in": {"a": 9}, "b": 1}, {"in": {"a": 9}}),
        ({"in": [1]}, "/in/0", {"in": {"0": 9}}, {"in": [1]}),  # there is no such place in what was typed since
        ({"b": 2}, "/in/a", {"in": {"a": 9}, "b": 1}, {"b": 2}),
    ],
)
def test_theirs_is_what_the_current_state_has_at_the_place(typed: Any, at: str, state: Any, settled: Any) -> None:
    """A value that the reader had taken out stayed out, though they chose the new version's."""
    form = {"state": as_json(typed), f"conflict.state{at}": "x", f"counts.state{at}": "theirs"}
    assert whole_state.read(form, state, redact.OPEN).state == settled
