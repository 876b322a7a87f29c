"""Several gates decided by one request, with a result for each."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
from django.contrib.auth.models import User

from approvals.models import Decision, Gate
from tests.approvals.bulk.bulk_forms import REASON, alike
from tests.factories import ann, make_card, make_gate, make_policy, make_team
from tests.harness.signed_in_clients import signed_in

from .sent_requests import document
from .test_doors import refusal


def body(gates: list[Gate], **said: Any) -> dict[str, Any]:
    named = [{"gate": gate.pk, "seen": bytes(gate.standing().digest).hex()} for gate in gates]
    return {"verdict": "approve", "comment": REASON, "second_look": True, "gates": named, **said}


def send(user: User, sent: dict[str, Any], *, key: str = "") -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return signed_in(user).post("/api/gates/decisions", sent, content_type="application/json", headers=headers)


def test_each_gate_has_a_result_and_the_same_key_gets_the_same_answer() -> None:
    team = make_team()
    policy, reviewer = make_policy(team), ann(team)
    gates, risky = alike(3, policy=policy), alike(1, policy=policy, risk="high")
    theirs = make_gate(team=make_team("Finance"), card=make_card(risk="low"))
    sent = body([*gates, *risky, theirs])
    answer = send(reviewer, sent, key="k")
    assert answer.status_code == 201, answer.content
    told = answer.json()
    schema = {"$ref": "#/components/schemas/DecidedTogether", "components": document()["components"]}
    jsonschema.validate(told, schema)
    assert (told["decided"], told["refused"]) == (3, 2)
    assert [each["state"] for each in told["results"]] == ["decided"] * 3 + ["refused"] * 2
    assert [each["code"] for each in told["results"]] == [""] * 3 + ["not_in_bulk", "not_found"]
    assert [each["status"] for each in told["results"]] == ["decided"] * 3 + ["open", ""]
    again = send(reviewer, sent, key="k")
    assert (again.json(), again["Idempotency-Replayed"]) == (told, "true")
    assert Decision.objects.filter(gate__in=[*gates, *risky, theirs]).count() == 3
    assert {each["decision"] for each in told["results"][:3]} == set(
        Decision.objects.filter(gate__in=gates).values_list("pk", flat=True)
    )


def test_what_no_bulk_decision_can_be_is_refused_as_a_whole_and_names_the_place() -> None:
    team = make_team()
    gates = alike(2, policy=make_policy(team))
    for said, place in (
        ({"comment": " "}, "/comment"), ({"second_look": False}, "/second_look"), ({"verdict": "reject"}, "/then"),
        ({"gates": body(gates[:1])["gates"] * 2}, "/gates"), ({"verdict": "edit"}, "/verdict"),
        ({"gates": []}, "/gates"),
    ):  # fmt: skip
        told = refusal(send(ann(team), {**body(gates), **said}), 422)
        assert place in {each["parameter"] for each in told["errors"]}, said
    assert set(Gate.objects.filter(pk__in=[gate.pk for gate in gates]).values_list("status", flat=True)) == {"open"}
