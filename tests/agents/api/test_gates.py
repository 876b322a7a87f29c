"""Gates over the API."""

from __future__ import annotations

import hashlib

from approvals.gates.page.shown_gate import shown
from approvals.presentation.gate_page.page import GatePage
from checkpoints.models import Checkpoint
from checkpoints.values.canonical_json import encode_canonical
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
    mira,
)
from tests.harness.altered_rows import altered
from tests.harness.signed_in_clients import signed_in

from .sent_requests import EXACT, ask, walk
from .test_doors import refusal


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


def test_a_reviewer_from_elsewhere_sees_the_gate_and_not_the_run() -> None:
    support, finance = make_team(may=MEMBER), make_team("Finance", may=REVIEWER)
    gate = make_gate(policy=make_policy(support, groups=(finance,)))
    reviewer = mira(finance)
    assert [each["id"] for each in ask(reviewer, "/api/gates")["items"]] == [gate.pk]
    assert ask(reviewer, f"/api/gates/{gate.pk}")["run"] == gate.run_id
    refusal(signed_in(reviewer).get(f"/api/runs/{gate.run_id}"), 404)
    refusal(signed_in(reviewer).get(f"/api/runs/{gate.run_id}/checkpoints/1"), 404)


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
    read = shown(gate.pk, to=reader)
    assert read
    page = GatePage(read, reader).agreement
    assert (found["quorum"], found["agreed"], found["who"]) == (2, 1, page.who)
    (voice,) = found["voices"]
    assert voice.pop("at")
    assert voice == {
        "name": "Bob Lindqvist", "verdict": "approve", "actions": {"refund": "approve"},
        "comment": "Looks <b>right</b>", "proposal": 1, "counts": True, "you": False, "on_behalf_of": "",
    }  # fmt: skip
    assert ask(other, f"/api/gates/{gate.pk}")["agreement"]["voices"][0]["you"]


def test_an_edit_is_what_stands_and_an_earlier_word_no_longer_counts() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    decide(gate, bob(team))
    decide(gate, mira(team), "edit", arguments=edit_amount(gate, "80.00"))
    found = ask(ann(team), f"/api/gates/{gate.pk}")
    assert found["proposal"] == 2
    assert found["card"]["actions"][0]["arguments"]["amount"] == "80.00"
    assert [(voice["name"], voice["counts"]) for voice in found["agreement"]["voices"]] == [
        ("Bob Lindqvist", False),
        ("Mira Sandoval", True),
    ]


def test_a_gate_that_was_decided_says_how_by_whom_and_what_may_run() -> None:
    team = make_team()
    gate = make_gate(team=team)
    decide(gate, bob(team), "edit", arguments=edit_amount(gate, "80.00"))
    gate.refresh_from_db()
    found = ask(ann(team), f"/api/gates/{gate.pk}")
    ended = found["outcome"]
    assert (found["status"], ended["kind"], ended["by"]) == ("decided", "edited", "Bob Lindqvist")
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
    assert answered["card"]["question"] == make_question().question
    value = answered["outcome"]["answer"]
    assert encode_canonical(value) == encode_canonical({"choice": "happened", "value": {"huge": 2**64, "share": 1.0}})


def test_what_does_not_match_its_digest_is_not_shown() -> None:
    team = make_team(may=READER)
    swapped, spoiled = make_gate(team=team), make_gate(team=team)
    standing = swapped.standing()
    Checkpoint.objects.filter(run=spoiled.run).update(state_digest=b"\0" * 32)
    with altered(standing, body=bytes(standing.body).replace(b"120.00", b"920.00")):
        assert (
            "differs from what was recorded"
            in refusal(signed_in(ann(team)).get(f"/api/gates/{swapped.pk}"), 409)["detail"]
        )
    assert "do not match their digest" in refusal(signed_in(ann(team)).get(f"/api/gates/{spoiled.pk}"), 409)["detail"]


def test_each_choice_that_stands_open_is_foretold() -> None:
    gate = make_gate()
    told = ask(ann(gate.team), f"/api/gates/{gate.pk}/impacts")["items"]
    assert [each["choice"] for each in told][:2] == ["approve", "stop"]
    assert {row["step"]: row["verdict"] for row in told[0]["impact"]["rows"]}["pay"] == "will"
    assert told[1]["impact"]["ends"] is True
