"""A rejection says why, where the policy asks for it, and what becomes of the run: nothing ends one by itself."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.errors import Invalid
from approvals.models import Decision, Gate
from checkpoints.models import Event
from checkpoints.values import canonical_json
from tests.factories import ann, bob, decide, make_action, make_card, make_gate, make_policy, make_team


def say(gate: Gate, **said: Any) -> Decision:
    """One word, with nothing in it but what is named."""
    person = ann(gate.team)
    return deciding.decide(
        gate, Submission(seen=bytes(gate.standing().digest), key=secrets.token_hex(8), **said), by=person
    )


def refusal(gate: Gate, **said: Any) -> list[str]:
    """Where it is refused, by pointer."""
    with pytest.raises(Invalid) as refused:
        say(gate, **said)
    assert Gate.objects.get(pk=gate.pk).status == "open"
    return [each["pointer"] for each in refused.value.errors]


def two_actions() -> list[Any]:
    return [make_action(), make_action(id="letter", pointer="/order", effect="reply", pinned=[])]


def make_two(**fields: Any) -> Gate:
    card = make_card(actions=two_actions(), allows=("pay", "reply"))
    return make_gate(policy=make_policy(make_team(), **fields), card=card)


@pytest.mark.parametrize("comment", ["", "   \n\t "])
@pytest.mark.parametrize("then", [{"then": "stop"}, {"then": "back", "back_to": "propose"}])
def test_a_rejection_without_a_reason_is_refused_and_kept_as_an_attempt(comment: str, then: dict[str, str]) -> None:
    gate = make_gate(policy=make_policy(make_team()))
    assert refusal(gate, verdict="reject", comment=comment, **then) == ["/comment"]
    [tried] = Event.objects.filter(kind="decision.refused", subject=gate.subject)
    assert canonical_json.decode_canonical(bytes(tried.data))["pointers"] == ["/comment"]


def test_a_team_whose_policy_asks_for_no_reason_rejects_without_one() -> None:
    gate = make_gate(policy=make_policy(make_team(), reason_required=False))
    assert say(gate, verdict="reject", then="stop").words == ""
    assert Gate.objects.get(pk=gate.pk).outcome.kind == "rejected"


def test_of_several_rejections_the_last_says_what_becomes_of_the_run() -> None:
    """Its sender was shown that the run stops, and it went back to a step, as the first one had said."""
    for before, last in (({"then": "back"}, {"then": "stop"}), ({"then": "stop"}, {"then": "back"})):
        gate = make_gate(policy=make_policy(make_team(), denials=2))
        decide(gate, ann(gate.team), "reject", **before)
        decide(gate, bob(gate.team), "reject", **last)
        outcome = Gate.objects.get(pk=gate.pk).outcome
        assert (outcome.then, outcome.back_to) == (last["then"], "propose" if last["then"] == "back" else "")


def test_a_rejection_that_does_not_say_what_becomes_of_the_run_is_refused() -> None:
    """It stopped the run."""
    gate = make_gate(policy=make_policy(make_team()))
    assert refusal(gate, verdict="reject", comment="No.") == ["/then"]


def test_all_that_is_missing_of_a_rejection_is_told_at_once() -> None:
    gate = make_gate(policy=make_policy(make_team()))
    assert refusal(gate, verdict="reject") == ["/comment", "/then"]


@pytest.mark.parametrize(("reason", "found"), [("", ["/comment"]), ("Wrong order.", [])])
def test_where_every_action_is_rejected_the_reason_of_one_is_enough(reason: str, found: list[str]) -> None:
    gate = make_two()
    each = {"refund": {"verdict": "reject", "reason": reason}, "letter": {"verdict": "reject"}}
    if found:
        assert refusal(gate, verdicts=each, then="stop") == found
        return
    assert say(gate, verdicts=each, then="stop").verdict == "reject"
    assert reason in bytes(Gate.objects.get(pk=gate.pk).outcome.feedback).decode()


def test_rejecting_every_action_ends_no_run_that_nobody_chose_to_end() -> None:
    gate = make_two()
    each = {name: {"verdict": "reject", "reason": "No."} for name in ("refund", "letter")}
    assert refusal(gate, verdicts=each) == ["/then"]
