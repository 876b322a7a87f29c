"""Decisions over the API: of all that a gate asks, of each of its actions, of several gates; and their previews."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.contrib.auth.models import User

from approvals.models import Decision, Gate
from checkpoints import store
from checkpoints.models import Checkpoint, Event
from tests.agents.api.sent_requests import ask, check_shape
from tests.agents.api.test_doors import refusal
from tests.approvals.bulk.bulk_forms import REASON, alike
from tests.approvals.cards.verdicts.conftest import known_agents, ledger
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, edit, lines, make_three, reject, respond
from tests.factories import (
    ann,
    bob,
    make_card,
    make_gate,
    make_policy,
    make_question,
    make_team,
    make_user,
)
from tests.factories.driven_runs import advance_to_rest, open_gate
from tests.harness.altered_rows import altered
from tests.harness.signed_in_clients import signed_in

__all__ = ["known_agents", "ledger"]
EACH_REJECTED = {name: reject("No.") for name in "abc"}


def post(user: User, gate: Gate, *, key: str = "", noun: str = "decisions", **body: Any) -> Any:
    """Decide what stands, or what `seen` says."""
    seen = bytes(Gate.objects.get(pk=gate.pk).standing().digest).hex()
    address, headers = f"/api/gates/{gate.pk}/{noun}", {"Idempotency-Key": key} if key else {}
    return signed_in(user).post(address, {"seen": seen, **body}, content_type="application/json", headers=headers)


def preview(user: User, gate: Gate, **body: Any) -> Any:
    return post(user, gate, noun="impacts", **body)


def steps(told: Any) -> dict[str, str]:
    return {row["step"]: row["verdict"] for row in told["impact"]["rows"]}


def test_a_word_on_each_action_is_taken_and_the_gate_tells_what_became_of_each(ledger: Path) -> None:
    run = make_three(ledger)
    gate, by = open_gate(run), ann(run.team)
    answer = post(by, gate, actions={"a": APPROVE, "b": edit(run, "b", amount=20), "c": respond("I rang them.")})
    assert answer.status_code == 201
    told = answer.json()
    check_shape(told, "Decided")
    assert (told["verdict"], told["actions"]) == ("mixed", {"a": "approve", "b": "edit", "c": "respond"})
    assert told["gate"]["status"] == "decided"

    ended = ask(by, f"/api/gates/{gate.pk}")["outcome"]
    assert (ended["kind"], ended["effects"]) == ("mixed", ["do_one", "do_two", "log"])
    assert ended["actions"]["c"] == {
        "verdict": "respond", "by": "Ann Okafor", "reason": "", "response": "I rang them.",
    }  # fmt: skip
    advance_to_rest(run)
    assert lines(ledger) == ["one 1", "two 20", "log True"]


def test_what_is_wrong_with_a_word_is_named_by_its_place_and_one_verdict_is_about_all(ledger: Path) -> None:
    """`reason` is what one action has: sent for the whole gate it was "not permitted", and nothing said what is.

    With a verdict beside it, an empty list of actions was passed over: the gate was approved as a whole.
    """
    run = make_three(ledger)
    gate, by = open_gate(run), ann(run.team)
    over = {"verdict": "edit", "arguments": {"id": "one", "tool": "one", "amount": 5000}}
    two = {"a": APPROVE, "b": APPROVE}
    wrong: list[tuple[dict[str, Any], list[str]]] = [
        ({"actions": {"a": APPROVE, "c": reject("")}}, ["/actions/b/verdict"]),
        ({"actions": {**two, "c": reject(""), "d": APPROVE}}, ["/actions/d/arguments"]),
        ({"actions": {"a": respond("x"), "b": {"verdict": "reject"}, "c": APPROVE}},
         ["/actions/a/verdict", "/actions/b/reason"]),
        ({"actions": {"a": over, "b": APPROVE, "c": APPROVE}}, ["/actions/a/arguments/amount"]),
        ({"actions": {**two, "c": reject("No.")}, "then": "back"}, ["/then"]),
        ({"verdict": "approve", "actions": {**two, "c": reject("No.")}}, ["/verdict"]),
        ({"verdict": "approve", "actions": {}}, ["/actions"]),
        ({"verdicts": {"a": APPROVE}}, ["/verdicts"]),
        ({"verdict": "reject", "reason": "Too dear."}, ["/reason"]),
    ]  # fmt: skip
    for body, places in wrong:
        told = refusal(post(by, gate, **body), 422)
        assert sorted(fault["parameter"] for fault in told["errors"]) == places
    assert "`comment`" in told["errors"][0]["detail"]
    assert open_gate(run).status == "open"
    told = post(by, gate, verdict="approve").json()
    assert (told["verdict"], set(told["actions"].values())) == ("approve", {"approve"})


def test_a_rejection_of_all_is_foretold_as_what_it_is_and_sends_the_run_back(ledger: Path) -> None:
    run = make_three(ledger)
    gate, by = open_gate(run), ann(run.team)
    stopped = preview(by, gate, actions=EACH_REJECTED, then="stop").json()
    assert (stopped["verdict"], stopped["stands"], stopped["impact"]["ends"]) == ("reject", True, True)
    back = preview(by, gate, actions=EACH_REJECTED, then="back").json()
    choices = ask(by, f"/api/gates/{gate.pk}/impacts")["items"]
    listed = {(one["choice"], one["of"]): one["impact"] for one in choices}
    assert (back["impact"], stopped["impact"]) == (listed["back", "look"], listed["stop", ""])
    assert post(by, gate, actions=EACH_REJECTED, then="back", comment="Too dear.").json()["verdict"] == "reject"
    outcome = Gate.objects.get(pk=gate.pk).outcome
    assert (outcome.kind, outcome.then) == ("rejected", "back")
    assert "Too dear." in outcome.words


def test_whoever_is_slower_is_told_what_changed_and_the_same_key_is_the_same_word(ledger: Path) -> None:
    team = make_team()
    make_policy(team, name="three", quorum=2)
    run = make_three(ledger, team=team)
    gate, first = open_gate(run), ann(team)
    seen, each = bytes(gate.standing().digest).hex(), {"a": APPROVE, "b": APPROVE, "c": reject("No.")}
    foretold = preview(first, gate, actions=each).json()
    assert (foretold["stands"], foretold["verdict"]) == (False, "mixed")
    one = post(first, gate, key="mine", seen=seen, actions=each).json()["id"]
    assert post(first, gate, key="mine", seen=seen, actions=each).json()["id"] == one
    told = refusal(post(bob(team), gate, seen=seen, verdict="approve"), 409)
    assert told["code"] == "stale"
    assert [(row["of"], row["after"]["reason"]) for row in told["changes"]] == [("verdict:c", "No.")]
    second = preview(bob(team), gate, verdict="approve").json()
    assert (second["stands"], second["changed"], second["verdict"]) == (True, [], "approve")
    assert second["impact"]["digest"] == foretold["impact"]["digest"]
    assert post(bob(team), gate, verdict="approve").json()["gate"]["status"] == "decided"


def test_the_state_is_loaded_once_and_one_that_does_not_verify_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = make_gate()
    by = ann(gate.team)
    load = Mock(wraps=store.load_checkpoint)
    monkeypatch.setattr(store, "load_checkpoint", load)
    assert preview(by, gate, verdict="approve").status_code == 200
    assert [call.args for call in load.mock_calls] == [(gate.checkpoint,)]
    with altered(Checkpoint.objects.get(pk=gate.checkpoint), state_digest=b"0" * 32):
        assert refusal(preview(by, gate, verdict="approve"), 409)["code"] == "not_verified"


def test_a_mix_is_foretold_as_it_then_comes_and_nothing_is_said_by_asking(ledger: Path) -> None:
    run = make_three(ledger)
    gate, by = open_gate(run), ann(run.team)
    each = {"a": APPROVE, "b": edit(run, "b", amount=20), "c": reject("Not this one.")}
    events = Event.objects.filter(run_id=run.pk).count()
    answer = preview(by, gate, actions=each)
    assert answer.status_code == 200
    told = answer.json()
    check_shape(told, "DecisionPreview")
    assert (told["verdict"], told["stands"], told["changed"]) == ("mixed", False, ["b", "c"])
    titles = {row["step"]: row["title"] for row in told["impact"]["rows"]}
    assert {name: titles[name] for name in ("do_one", "log")} == {"do_one": "Do one", "log": "Log"}
    assert steps(told) | {"do_one": "will", "do_two": "will", "do_three": "skipped", "log": "will"} == steps(told)
    gate.refresh_from_db()
    assert (gate.status, gate.proposal, gate.version) == ("open", 1, 1)
    assert not Decision.objects.filter(gate=gate).exists()
    assert Event.objects.filter(run_id=run.pk).count() == events

    assert post(by, gate, actions=each).json()["verdict"] == told["verdict"]
    effects = ask(by, f"/api/gates/{gate.pk}")["outcome"]["effects"]
    assert effects == [name for name, verdict in steps(told).items() if verdict == "will" and name in effects]


def test_an_answer_is_foretold_as_the_list_of_choices_has_it() -> None:
    gate = make_gate(card=make_question(), kind="recovery")
    by = ann(gate.team)
    told = preview(by, gate, verdict="answer", answer={"choice": "stop"}).json()
    assert told["verdict"] == "answer"
    listed = {each["of"]: each["impact"] for each in ask(by, f"/api/gates/{gate.pk}/impacts")["items"]}
    assert told["impact"] == listed["stop"]


def test_a_preview_is_refused_as_the_decision_would_be(ledger: Path) -> None:
    run = make_three(ledger)
    gate, by = open_gate(run), ann(run.team)
    told = refusal(preview(by, gate, actions={"a": APPROVE, "c": reject("")}), 422)
    assert [fault["parameter"] for fault in told["errors"]] == ["/actions/b/verdict"]
    assert "whole" in str(refusal(preview(by, gate, verdict="edit", state={"x": 1}), 422)["errors"])
    refusal(preview(by, gate, seen="0" * 64, verdict="approve"), 409)
    refusal(preview(make_user("Rita Reader", make_team()), gate, verdict="approve"), 404)
    post(by, gate, verdict="approve")
    assert "already decided this" in refusal(preview(bob(run.team), gate, verdict="approve"), 409)["detail"]


def together(gates: list[Gate], **said: Any) -> dict[str, Any]:
    named = [{"gate": gate.pk, "seen": bytes(gate.standing().digest).hex()} for gate in gates]
    return {"verdict": "approve", "comment": REASON, "second_look": True, "gates": named, **said}


def send(user: User, sent: dict[str, Any], **headers: str) -> Any:
    return signed_in(user).post("/api/gates/decisions", sent, content_type="application/json", headers=headers)


def test_each_gate_of_several_has_a_result_and_the_same_key_gets_the_same_answer() -> None:
    team = make_team()
    policy, reviewer = make_policy(team), ann(team)
    gates, risky = alike(3, policy=policy), alike(1, policy=policy, risk="high")
    theirs = make_gate(team=make_team("Finance"), card=make_card(risk="low"))
    sent = together([*gates, *risky, theirs])
    answer = send(reviewer, sent, **{"Idempotency-Key": "k"})
    assert answer.status_code == 201, answer.content
    told = answer.json()
    check_shape(told, "DecidedTogether")
    assert (told["decided"], told["refused"]) == (3, 2)
    assert [(each["state"], each["code"], each["status"]) for each in told["results"]] == [
        *[("decided", "", "decided")] * 3, ("refused", "not_in_bulk", "open"), ("refused", "not_found", ""),
    ]  # fmt: skip
    again = send(reviewer, sent, **{"Idempotency-Key": "k"})
    assert (again.json(), again["Idempotency-Replayed"]) == (told, "true")
    made = Decision.objects.filter(gate__in=[*gates, *risky, theirs]).values_list("pk", flat=True)
    assert sorted(made) == sorted(each["decision"] for each in told["results"][:3])
