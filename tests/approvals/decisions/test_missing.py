"""What a card says is missing has to be filled in before anything is agreed to.

The bug: "Type the missing facts" took a plain Approve with the value that was known to be wrong, and asked again for
ever.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from approvals.errors import CardRefused, Invalid
from approvals.gates import closing
from approvals.gates.closing import pass_deadline
from approvals.models import Gate
from tests.factories import ann, bob, decide, edit_amount, make_action, make_card, make_gate, make_policy, make_team


def make_missing(**policy: Any) -> Gate:
    """A gate whose card says that the amount is missing."""
    card = make_card(actions=[make_action(missing=["/amount"])])
    return make_gate(policy=make_policy(**policy), card=card)


def refusal(gate: Gate, verdict: str, **said: Any) -> list[tuple[str, str, str]]:
    """(action, pointer, message) of each fault of a refused decision."""
    with pytest.raises(Invalid) as refused:
        decide(gate, ann(gate.team), verdict, **said)
    assert Gate.objects.get(pk=gate.pk).status == "open"
    return [(each["action"], each["pointer"], each["message"]) for each in refused.value.errors]


def test_what_is_missing_cannot_be_approved_as_it_was_asked() -> None:
    [(action, pointer, message)] = refusal(make_missing(), "approve")
    assert (action, pointer) == ("refund", "/amount")
    assert message == "Change this value: the agent says that it cannot go on with it as it is."


def test_an_edit_of_something_else_leaves_it_missing() -> None:
    gate = make_missing()
    action = gate.standing().card.actions[0]
    [(_, pointer, _)] = refusal(gate, "edit", arguments={"refund": {**action.arguments, "reply": "Hello."}})
    assert pointer == "/amount"


def test_an_empty_value_does_not_fill_it_in() -> None:
    card = make_card(actions=[make_action(missing=["/reply"])])
    gate = make_gate(card=card)
    action = gate.standing().card.actions[0]
    [(_, pointer, message)] = refusal(gate, "edit", arguments={"refund": {**action.arguments, "reply": " "}})
    assert (pointer, message) == ("/reply", "Fill this in: nothing can be approved without it.")


def test_filled_in_it_is_agreed_to_and_others_may_approve_that() -> None:
    gate = make_missing(quorum=2)
    decide(gate, ann(gate.team), "edit", arguments=edit_amount(gate, "80.00"))
    decide(gate, bob(gate.team))
    assert Gate.objects.get(pk=gate.pk).status == "decided"


def test_who_puts_back_what_was_asked_leaves_it_missing_again() -> None:
    gate = make_missing(quorum=2)
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "80.00"))
    [(_, pointer, _)] = refusal(gate, "edit", arguments=edit_amount(gate, "120.00"))
    assert pointer == "/amount"


def test_a_verdict_on_each_action_is_held_to_it_where_the_action_runs() -> None:
    pay = make_action(missing=["/amount"])
    note = make_action(id="note", effect="reply", pointer="/order", edits=False, pinned=[])
    gate = make_gate(card=make_card(actions=[pay, note]))
    approve = {"verdict": "approve"}
    [(action, pointer, _)] = refusal(gate, "", verdicts={"refund": approve, "note": approve})
    assert (action, pointer) == ("refund", "/amount")
    refused = {"verdict": "reject", "reason": "Nobody knows how much."}
    decide(gate, ann(gate.team), "", verdicts={"refund": refused, "note": approve})
    assert Gate.objects.get(pk=gate.pk).outcome.kind == "mixed"


def test_a_rejection_needs_nothing_filled_in() -> None:
    gate = make_missing()
    decide(gate, ann(gate.team), "reject")
    assert Gate.objects.get(pk=gate.pk).outcome.kind == "rejected"


def test_a_deadline_that_approves_approves_nothing_that_is_missing() -> None:
    gate = make_missing(deadline=dt.timedelta(hours=1), on_expiry="approve")
    pass_deadline(gate)
    outcome = closing.expire(gate)
    assert outcome is not None
    assert (outcome.kind, outcome.grants.count()) == ("expired", 0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"missing": ["/amount"], "edits": False}, "lacks /amount, but the gate lets nobody edit it"),
        ({"missing": ["/amuont"]}, "lacks /amuont, which is no place in its arguments"),
    ],
)
def test_what_nobody_could_fill_in_is_not_asked_for(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CardRefused, match=sentence):
        make_gate(card=make_card(actions=[make_action(**changes)]))


def test_nothing_is_said_of_what_is_missing_where_nothing_is() -> None:
    """A digest of what was asked before cards knew of it stays what it was."""
    assert "missing" not in make_gate(team=make_team()).standing().content["actions"][0]
