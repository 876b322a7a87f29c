"""Gates over the API: the open ones, one with its votes and outcome, its desk, an undone decision, the receipt."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from agents.models import TokenScope
from approvals.models import Assignee, Gate, GateClaim
from checkpoints.models import Checkpoint
from checkpoints.values.canonical_json import encode_canonical
from tests.agents.api.sent_requests import EXACT, ask, check_shape, walk
from tests.agents.api.test_doors import refusal
from tests.agents.serving.test_unrun import approved, begin, look
from tests.approvals.assignments.test_away import lend
from tests.approvals.decisions.undoing.windows import end_window, make_held, now
from tests.factories import (
    MEMBER,
    READER,
    REVIEWER,
    ann,
    bob,
    decide,
    edit_amount,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_question,
    make_run,
    make_state,
    make_team,
    make_user,
    mira,
    unique,
)
from tests.factories.tokens import bearing, make_token
from tests.harness.altered_rows import altered
from tests.harness.signed_in_clients import signed_in


def test_pages_of_open_gates_follow_each_other_without_a_gap_or_a_repeat() -> None:
    team = make_team()
    made = [make_gate(team=team) for _ in range(5)]
    decide(made[1], ann(team), "reject")
    made.pop(1)
    assert [gate["id"] for gate in walk(bob(team), "/api/gates", limit=2)] == [gate.pk for gate in made]
    first = ask(bob(team), "/api/gates", limit=2)
    decide(made[0], ann(team))
    late = make_gate(team=team)
    rest = [gate["id"] for gate in ask(bob(team), "/api/gates", cursor=first["next"])["items"]]
    assert rest == [made[2].pk, made[3].pk, late.pk]


def test_the_card_is_sent_as_the_bytes_that_its_digest_covers() -> None:
    run = make_run(state=make_state(order=EXACT))
    gate = make_gate(run=run, card=make_card(actions=[make_action(id="ship", effect="", pointer="/order")]))
    answer = signed_in(ann(gate.team)).get(f"/api/gates/{gate.pk}")
    standing = gate.standing()
    body = bytes(standing.body)
    assert b',"card":' + body + b',"outcome":null,' in answer.content
    assert b'"huge":18446744073709551617,"share":1.0' in answer.content
    assert answer.json()["digest"] == hashlib.sha256(b"holdpoint value\n" + body).hexdigest()


def test_a_gate_says_who_must_agree_and_who_has() -> None:
    team = make_team()
    reader, other = ann(team), bob(team)
    gate = make_gate(policy=make_policy(team, quorum=2))
    decide(gate, other, comment="Looks <b>right</b>")
    found = ask(reader, f"/api/gates/{gate.pk}")["agreement"]
    assert (found["quorum"], found["agreed"]) == (2, 1)
    assert found["who"] == f"anyone who may decide in {team.name}; not the person who started it or owns its token"
    (voice,) = found["voices"]
    assert voice.pop("at")
    assert voice == {
        "name": "Bob Lindqvist", "verdict": "approve", "actions": {"refund": "approve"},
        "comment": "Looks <b>right</b>", "proposal": 1, "counts": True, "you": False, "on_behalf_of": "",
    }  # fmt: skip
    assert ask(other, f"/api/gates/{gate.pk}")["agreement"]["voices"][0]["you"]


def test_an_edit_is_what_stands_until_the_gate_says_how_it_was_decided_by_whom_and_what_may_run() -> None:
    gate = make_gate(policy=make_policy(team := make_team(), quorum=2, whole_state=True))
    decide(gate, bob(team))
    decide(gate, mira(team), "edit", arguments=edit_amount(gate, "80.00"))
    found = ask(ann(team), f"/api/gates/{gate.pk}")
    assert (found["proposal"], found["whole_state"]) == (2, True)
    assert found["card"]["actions"][0]["arguments"]["amount"] == "80.00"
    voices = [(voice["name"], voice["counts"]) for voice in found["agreement"]["voices"]]
    assert voices == [("Bob Lindqvist", False), ("Mira Sandoval", True)]
    decide(Gate.objects.get(pk=gate.pk), bob(team))
    gate = Gate.objects.get(pk=gate.pk)
    found = ask(ann(team), f"/api/gates/{gate.pk}")
    ended = found["outcome"]
    assert (found["status"], ended["kind"]) == ("decided", "edited")
    assert "Mira Sandoval" in ended["by"]
    assert ended["arguments"]["refund"]["amount"] == "80.00"
    assert ended["patch"] == gate.outcome.state_patch
    assert ended["effects"] == ["pay", "reply"]
    assert ended["to_run"] == bytes(gate.outcome.approved().digest()).hex()
    assert ended["seen"] == found["digest"]


def test_a_rejection_and_an_answer_are_told() -> None:
    team = make_team()
    sent_back, asked = make_gate(team=team), make_gate(team=team, kind="recovery")
    decide(sent_back, bob(team), "reject", then="back", back_to="propose", comment="Only the second came back.")
    decide(asked, bob(team), "answer", answer={"choice": "happened", "value": {"huge": 2**64, "share": 1.0}})
    rejected = ask(ann(team), f"/api/gates/{sent_back.pk}")["outcome"]
    assert (rejected["kind"], rejected["then"], rejected["back_to"]) == ("rejected", "back", "propose")
    assert (rejected["feedback"], rejected["effects"], rejected["to_run"]) == ("Only the second came back.", [], None)
    answered = ask(ann(team), f"/api/gates/{asked.pk}")
    assert (answered["card"]["question"], answered["whole_state"]) == (make_question().question, False)
    value = answered["outcome"]["answer"]
    assert encode_canonical(value) == encode_canonical({"choice": "happened", "value": {"huge": 2**64, "share": 1.0}})


def test_what_does_not_match_its_digest_is_not_shown() -> None:
    team = make_team(may=READER)
    swapped, spoiled = make_gate(team=team), make_gate(team=team)
    standing = swapped.standing()
    Checkpoint.objects.filter(run=spoiled.run).update(state_digest=b"\0" * 32)
    with altered(standing, body=bytes(standing.body).replace(b"120.00", b"920.00")):
        told = refusal(signed_in(ann(team)).get(f"/api/gates/{swapped.pk}"), 409)["detail"]
        assert "differs from what was recorded" in told
    assert "do not match their digest" in refusal(signed_in(ann(team)).get(f"/api/gates/{spoiled.pk}"), 409)["detail"]


def send(by: User, gate: Gate, noun: str, status: int = 201, /, **body: Any) -> dict[str, Any]:
    """Order something of the gate's desk by a token of one's own."""
    client = bearing(make_token(by, TokenScope.SEE, TokenScope.DECIDE)[1])
    answer = client.post(f"/api/gates/{gate.pk}/{noun}", body, content_type="application/json")
    assert answer.status_code == status, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_a_claim_is_named_to_whoever_decides_over_it_taken_over_released_and_the_gate_handed_over() -> None:
    team = make_team()
    gate, one, other = make_gate(team=team), ann(team), bob(team)
    claim = send(one, gate, "claims")["desk"]["claim"]
    assert (claim["by"], claim["you"], claim["looking"]) == ("Ann Okafor", True, False)
    assert send(other, gate, "claims", 409)["code"] == "claimed"
    assert send(other, gate, "releases", 409)["code"] == "not_claimed"
    refused = send(other, gate, "decisions", 409, seen=bytes(gate.standing().digest).hex(), verdict="approve")
    assert (refused["code"], "Ann Okafor" in refused["detail"]) == ("claimed", True)
    assert send(other, gate, "takeovers")["desk"]["claim"]["by"] == "Bob Lindqvist"
    read = ask(one, f"/api/gates/{gate.pk}")["desk"]["claim"]
    assert (read["by"], read["you"]) == ("Bob Lindqvist", False)
    assert send(other, gate, "releases")["desk"]["claim"] is None
    assert not GateClaim.objects.filter(gate=gate).exists()
    assert send(one, gate, "reassignments", person=other.username, reason="Please")["desk"]["asked"] == "Bob Lindqvist"
    for body in ({"person": "nobody"}, {}, {"person": other.username, "team": team.name}, {"person": "\0"}):
        assert send(one, gate, "reassignments", 422, reason="Please", **body)["code"] == "invalid"
    assert Assignee.objects.get(gate=gate).user == other


def test_it_names_for_whom_a_person_decides_who_is_no_reviewer_anyway_and_whom_nothing_bars() -> None:
    """It named those too for whom the person could not decide: a reviewer's, and whoever had started the run."""
    team = make_team()
    one, other, reviewer = ann(team), make_user("Bo Elsewhere"), bob(team)
    lend(one, other)
    lend(one, reviewer)
    named = [
        ask(by, f"/api/gates/{gate.pk}")["desk"]["for_whom"]
        for gate in (make_gate(team=team), make_gate(team=team, started_by=one))
        for by in (other, reviewer)
    ]
    assert named == [["Ann Okafor"], [], [], []]


def undo(client: Client, gate: Gate, key: str = "", **body: Any) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(f"/api/gates/{gate.pk}/undos", body, content_type="application/json", headers=headers)


def test_the_gate_tells_when_the_decision_takes_effect_and_the_undo_takes_it_back_once_for_a_key() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    made, client = decide(gate, person), signed_in(person)
    told = ask(person, f"/api/gates/{gate.pk}")
    assert (told["status"], told["settles_as"]) == ("open", "approved")
    assert told["settles_at"] is not None
    answer = undo(client, gate, "k1", decision=made.pk)
    assert answer.status_code == 201
    assert (answer.json()["id"], answer.json()["gate"]["settles_at"]) == (made.pk, None)
    again = undo(client, gate, decision=made.pk)
    assert (again.status_code, again.json()["code"]) == (409, "nothing_to_undo")
    decide(gate, person)
    second = undo(client, gate, "k1", decision=made.pk)
    assert (second.json()["id"], second["Idempotency-Replayed"]) == (made.pk, "true")
    assert now(gate).settles_as == "approved"
    end_window(gate)
    assert undo(client, gate).json()["code"] == "too_late"
    assert undo(client, make_gate(policy=make_policy(team, name=unique("now")))).json()["code"] == "no_undo"


def receipt(user: User, gate: Gate) -> Any:
    told = ask(user, f"/api/gates/{gate.pk}/receipt")
    check_shape(told, "ReceiptAnswer")
    return told


def test_a_receipt_tells_what_ran_and_what_has_not() -> None:
    gate = approved()
    person = bob(gate.team)
    look()
    assert receipt(person, gate)["not_run"]["code"] == "no_worker"
    begin(gate)
    told = receipt(person, gate)
    assert told["not_run"] is None
    shown_effects = [(each["effect"], each["state"], each["amount"]) for each in told["effects"]]
    assert shown_effects == [("pay", "done", "€120.00"), ("reply", "waiting", "")]
    assert told["effects"][0]["returned"] == {"payment, id": "pay_7"}
    assert [each["name"] for each in told["decided"]] == ["Ann Okafor"]


def test_a_reviewer_from_elsewhere_sees_the_gate_and_the_receipt_and_nothing_that_is_the_runs() -> None:
    support, finance = make_team(may=MEMBER), make_team("Finance", may=REVIEWER)
    gate, reviewer = make_gate(policy=make_policy(support, groups=(finance,))), mira(finance)
    assert [each["id"] for each in ask(reviewer, "/api/gates")["items"]] == [gate.pk]
    assert ask(reviewer, f"/api/gates/{gate.pk}")["run"] == gate.run_id
    for path in (f"/api/runs/{gate.run_id}", f"/api/runs/{gate.run_id}/checkpoints/1"):
        refusal(signed_in(reviewer).get(path), 404)
    told = receipt(reviewer, gate)
    assert (told["status"], told["kind"], told["effects"]) == ("open", None, [])
    decide(gate, reviewer)
    begin(Gate.objects.select_related("run").get(pk=gate.pk))
    [paid, _] = receipt(reviewer, gate)["effects"]
    assert (paid["state"], paid["returned"], paid["error"]) == ("done", {}, "")
