"""Decisions over the API: about all that a gate asks, or about each of its actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from django.contrib.auth.models import User

from approvals.models import Gate
from tests.approvals.cards.verdicts.conftest import known_agents, ledger
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, edit, lines, make_three, reject, respond
from tests.factories import ann, bob, make_action, make_card, make_gate, make_policy, make_team
from tests.factories.driven_runs import advance_to_rest, open_gate
from tests.harness.signed_in_clients import signed_in

from .sent_requests import ask, document
from .test_doors import refusal

__all__ = ["known_agents", "ledger"]


def post(user: User, gate: Gate, *, key: str = "", **body: Any) -> Any:
    """Decide what stands, or what `seen` says."""
    seen = bytes(Gate.objects.get(pk=gate.pk).standing().digest).hex()
    address, headers = f"/api/gates/{gate.pk}/decisions", {"Idempotency-Key": key} if key else {}
    return signed_in(user).post(address, {"seen": seen, **body}, content_type="application/json", headers=headers)


def test_a_word_on_each_action_is_taken_and_the_gate_tells_what_became_of_each(ledger: Path) -> None:
    run = make_three(ledger)
    gate, by = open_gate(run), ann(run.team)
    answer = post(by, gate, actions={"a": APPROVE, "b": edit(run, "b", amount=20), "c": respond("I rang them.")})
    assert answer.status_code == 201
    told = answer.json()
    jsonschema.validate(told, {"$ref": "#/components/schemas/Decided", "components": document()["components"]})
    assert (told["verdict"], told["actions"]) == ("mixed", {"a": "approve", "b": "edit", "c": "respond"})
    assert told["gate"]["status"] == "decided"

    ended = ask(by, f"/api/gates/{gate.pk}")["outcome"]
    assert (ended["kind"], ended["effects"]) == ("mixed", ["do_one", "do_two", "log"])
    assert ended["actions"]["c"] == {
        "verdict": "respond", "by": "Ann Okafor", "reason": "", "response": "I rang them.",
    }  # fmt: skip
    advance_to_rest(run)
    assert lines(ledger) == ["one 1", "two 20", "log True"]


def test_one_verdict_is_about_all_of_them(ledger: Path) -> None:
    run = make_three(ledger)
    told = post(ann(run.team), open_gate(run), verdict="approve").json()
    assert (told["verdict"], set(told["actions"].values())) == ("approve", {"approve"})


def test_a_rejection_of_all_sends_the_run_back(ledger: Path) -> None:
    run = make_three(ledger)
    gate = open_gate(run)
    each = {name: reject("No.") for name in "abc"}
    assert post(ann(run.team), gate, actions=each, then="back").json()["verdict"] == "reject"
    outcome = Gate.objects.get(pk=gate.pk).outcome
    assert (outcome.kind, outcome.then) == ("rejected", "back")


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"actions": {"a": APPROVE, "c": reject("")}}, ["/actions/b/verdict"]),
        ({"actions": {"a": APPROVE, "b": APPROVE, "c": reject(""), "d": APPROVE}}, ["/actions/d/arguments"]),
        ({"actions": {"a": APPROVE, "b": APPROVE, "c": {"verdict": "reject"}}}, ["/actions/c/reason"]),
        ({"actions": {"a": respond("x"), "b": {"verdict": "reject"}, "c": APPROVE}},
         ["/actions/a/verdict", "/actions/b/reason"]),
        ({"actions": {"a": {"verdict": "edit", "arguments": {"id": "one", "tool": "one", "amount": 5000}},
                      "b": APPROVE, "c": APPROVE}}, ["/actions/a/arguments/amount"]),
        ({"actions": {"a": APPROVE, "b": APPROVE, "c": reject("No.")}, "then": "back"}, ["/then"]),
        ({"verdict": "approve", "actions": {"a": APPROVE, "b": APPROVE, "c": reject("No.")}}, ["/verdict"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_word_is_named_by_its_place(body: Any, places: list[str], ledger: Path) -> None:
    run = make_three(ledger)
    told = refusal(post(ann(run.team), open_gate(run), **body), 422)
    assert sorted(fault["parameter"] for fault in told["errors"]) == places
    assert open_gate(run).status == "open"


def test_a_member_that_does_not_exist_is_refused(ledger: Path) -> None:
    run = make_three(ledger)
    refusal(post(ann(run.team), open_gate(run), verdicts={"a": APPROVE}), 422)


def test_why_all_of_it_is_rejected_is_its_comment_and_a_reason_names_that(ledger: Path) -> None:
    """`reason` is what one action has: sent for the whole gate it was "not permitted", and nothing said what is."""
    run = make_three(ledger)
    told = refusal(post(ann(run.team), open_gate(run), verdict="reject", reason="Too dear."), 422)
    (fault,) = told["errors"]
    assert fault["parameter"] == "/reason"
    assert "`comment`" in fault["detail"]
    post(ann(run.team), gate := open_gate(run), verdict="reject", then="stop", comment="Too dear.")
    assert Gate.objects.get(pk=gate.pk).outcome.words == "Too dear."


def test_whoever_is_slower_is_told_what_changed_and_the_same_key_is_the_same_word(ledger: Path) -> None:
    team = make_team()
    make_policy(team, name="three", quorum=2)
    run = make_three(ledger, team=team)
    gate, first = open_gate(run), ann(team)
    seen, each = bytes(gate.standing().digest).hex(), {"a": APPROVE, "b": APPROVE, "c": reject("No.")}
    one = post(first, gate, key="mine", seen=seen, actions=each).json()["id"]
    assert post(first, gate, key="mine", seen=seen, actions=each).json()["id"] == one
    told = refusal(post(bob(team), gate, seen=seen, verdict="approve"), 409)
    assert told["code"] == "stale"
    assert [(row["of"], row["after"]["reason"]) for row in told["changes"]] == [("verdict:c", "No.")]
    assert post(bob(team), gate, verdict="approve").json()["gate"]["status"] == "decided"


def test_a_word_on_no_action_is_no_approval(ledger: Path) -> None:
    """With a verdict beside it, an empty list of actions was passed over: the gate was approved as a whole."""
    run = make_three(ledger)
    gate = open_gate(run)
    answer = post(ann(run.team), gate, verdict="approve", actions={})
    assert answer.status_code == 422
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_an_approval_of_what_lacks_something_is_refused_with_its_pointer() -> None:
    card = make_card(actions=[make_action(missing=["/amount"])])
    gate = make_gate(card=card)
    answer = post(ann(gate.team), gate, verdict="approve")
    [fault] = answer.json()["errors"]
    assert answer.status_code == 422
    assert fault["parameter"].endswith("/amount")
    assert "Change this value" in fault["detail"]
    asked = ask(ann(gate.team), f"/api/gates/{gate.pk}")["card"]["actions"][0]
    assert asked["missing"] == ["/amount"]
