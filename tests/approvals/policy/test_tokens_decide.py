"""A policy says whether decisions by token count; nothing else about the gate changes."""

from __future__ import annotations

import json
import re
from typing import Any

from django.contrib.auth.models import User
from django.urls import reverse

from approvals.errors import TokenMayNotDecide
from approvals.models import Gate, Policy, versions
from checkpoints import actors
from checkpoints.models import Event
from tests.agents.api.test_doors import refusal
from tests.factories import ann, decide, make_gate, make_policy, make_team, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import form_of, signed_in


def closed_to_tokens(*, tokens: bool = False) -> Gate:
    """A gate under a policy that people made in the administration."""
    policy = Policy(team=make_team(), name="refunds", tokens_decide=tokens)
    versions.write(policy, by=actors.SYSTEM)
    return make_gate(policy=policy)


def send(gate: Gate, by: User, path: str = "decisions") -> Any:
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve"}
    _, sent = make_token(by)
    return bearing(sent).post(f"/api/gates/{gate.pk}/{path}", body, content_type="application/json")


def test_a_token_is_refused_and_told_where_to_decide() -> None:
    gate = closed_to_tokens()
    by = ann(gate.team)
    for path in ("decisions", "impacts"):
        told = refusal(send(gate, by, path), 403)
        assert told["code"] == "token_not_allowed"
        assert "decide on the gate's page" in told["detail"]
    assert Gate.objects.get(pk=gate.pk).status == "open"
    event = Event.objects.get(kind="decision.refused", subject=gate.subject)
    assert json.loads(bytes(event.data))["kind"] == TokenMayNotDecide.code


def test_the_page_decides_and_says_that_tokens_do_not() -> None:
    gate = closed_to_tokens()
    client = signed_in(ann(gate.team))
    shown = client.get(f"/gates/{gate.pk}/").content.decode()
    assert "Decided on this page only, not by API tokens" in shown
    assert "not by an API token" in shown
    assert client.get(f"/api/gates/{gate.pk}").json()["tokens_decide"] is False
    client.post(f"/gates/{gate.pk}/decisions/", form_of(gate))
    assert Gate.objects.get(pk=gate.pk).status == "decided"


def test_a_session_decides_over_the_api() -> None:
    gate = closed_to_tokens()
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve"}
    answer = signed_in(ann(gate.team)).post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")
    assert answer.status_code == 201


def test_whoever_may_not_decide_is_told_that_first() -> None:
    gate = closed_to_tokens()
    reader = make_user("Rita Reader", gate.team)
    reader.groups.clear()
    assert send(gate, reader).status_code == 404


def test_where_the_policy_takes_tokens_they_decide() -> None:
    for gate in (
        closed_to_tokens(tokens=True),
        make_gate(policy=make_policy(make_team())),
        make_gate(team=make_team()),
    ):
        assert send(gate, ann(gate.team)).status_code == 201
        shown = signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/").content.decode()
        assert "API token" not in shown


def test_a_policy_that_was_opened_to_tokens_in_its_row_lets_nobody_decide() -> None:
    gate = closed_to_tokens()
    Policy.objects.filter(pk=gate.policy_id).update(tokens_decide=True)
    assert send(gate, ann(gate.team)).status_code == 409
    Policy.objects.filter(pk=gate.policy_id).update(tokens_decide=False)


def test_one_that_is_closed_in_its_row_is_found_too() -> None:
    gate = make_gate(policy=make_policy(make_team()))
    Policy.objects.filter(pk=gate.policy_id).update(tokens_decide=False)
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve"}
    client = signed_in(ann(gate.team))
    answer = client.post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")
    assert refusal(answer, 409)["code"] == "not_verified"
    Policy.objects.filter(pk=gate.policy_id).update(tokens_decide=True)
    decide(gate, ann(gate.team))


def ticked(page: str) -> bool:
    """Whether the form's box is."""
    [box] = re.findall('<input[^>]*name="tokens_decide"[^>]*>', page)
    return "checked" in box


def test_in_the_administration_a_new_policy_begins_without_and_a_version_keeps_what_there_was() -> None:
    root = signed_in(make_user("Root", superuser=True))
    added = root.get(reverse("admin:approvals_policy_add")).content.decode()
    assert not ticked(added)
    for before in (True, False):
        policy = closed_to_tokens(tokens=before).policy
        page = root.get(reverse("admin:approvals_policy_change", args=[policy.pk])).content.decode()
        assert ticked(page) is before
