"""Where a policy asks for the password again, or for no token, nothing else lets a decision count."""

from __future__ import annotations

import datetime as dt
import json
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.utils import timezone

from approvals.accounts.factors import ProofMethod
from approvals.errors import NotConfirmed, TokenMayNotDecide
from approvals.models import Draft, Gate, Policy, versions
from approvals.policy.step_up import PASSKEY, Confirmed, counts
from checkpoints import actors
from checkpoints.models import Event
from tests.agents.api.test_doors import refusal
from tests.factories import ann, bob, decide, edit_amount, make_gate, make_policy, make_team, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import form_of, signed_in

NOW = timezone.now()
PASSWORD = "open sesame again"
AMOUNT = "args.refund/amount"


def by_password(user: int, at: dt.datetime) -> Confirmed:
    return Confirmed(user, {ProofMethod.PASSWORD: at})


def strict_gate(quorum: int = 1) -> Gate:
    return make_gate(policy=make_policy(make_team(), step_up=True, quorum=quorum))


def reviewer_of(gate: Gate) -> Any:
    return make_user("Ann Okafor", gate.team, password=PASSWORD)


def confirm(client: Client, password: str = PASSWORD, next: str = "/") -> Any:
    return client.post("/accounts/reauthenticate/", {"password": password, "next": next})


def send(client: Client, gate: Gate, **form: str) -> Any:
    return client.post(f"/gates/{gate.pk}/decisions/", form_of(gate, **form))


def status(gate: Gate) -> str:
    return Gate.objects.get(pk=gate.pk).status


def refusals(gate: Gate) -> list[str]:
    found = Event.objects.filter(kind="decision.refused", subject=gate.subject).order_by("pk")
    return [json.loads(bytes(event.data))["kind"] for event in found]


def test_a_password_is_no_passkey() -> None:
    gate = make_gate(policy=make_policy(make_team(), step_up=True, step_up_method="passkey"))
    client = signed_in(reviewer_of(gate))
    confirm(client)
    assert send(client, gate)["Location"].startswith("/accounts/reauthenticate/passkey/?next=%2Fgates%2F")
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve"}
    refused = client.post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")
    assert (refused.status_code, "your passkey" in refused.json()["detail"]) == (403, True)
    assert (status(gate), refusals(gate)) == ("open", ["not_confirmed"] * 2)


@override_settings(HOLDPOINT_STEP_UP_MINUTES=1.5)
def test_it_counts_for_the_minutes_of_a_setting_and_of_some_ways_alone() -> None:
    by = ann()
    for since, enough in ((0, True), (89, True), (90, False), (-30, True), (-66, False)):
        assert counts(by_password(by.pk, NOW - dt.timedelta(seconds=since)), by=by, now=NOW) is enough, since
    said = Confirmed(by.pk, {ProofMethod.PASSWORD: NOW, ProofMethod.CODE: NOW, ProofMethod.RECOVERY_CODE: NOW})
    assert counts(said, by=by, now=NOW)
    assert not counts(said, by=by, now=NOW, asked=PASSKEY)
    assert counts(Confirmed(by.pk, {ProofMethod.PASSKEY: NOW}), by=by, now=NOW, asked=PASSKEY)
    assert not counts(Confirmed(by.pk, {ProofMethod.RECOVERY_CODE: NOW}), by=by, now=NOW)
    assert not counts(Confirmed(by.pk, {ProofMethod.PROVIDER: NOW}), by=by, now=NOW)
    assert not counts(by_password(bob().pk, NOW), by=by, now=NOW)
    assert not counts(None, by=by, now=NOW)


def test_model_code_without_evidence_is_refused_whatever_it_says_and_the_audit_has_it() -> None:
    gate = strict_gate()
    reviewer = reviewer_of(gate)
    for verdict, said in (("reject", {}), ("edit", {"arguments": edit_amount(gate, "5.00")})):
        with pytest.raises(NotConfirmed, match="open the gate's page"):
            decide(gate, reviewer, verdict, **said)
    assert (status(gate), refusals(gate)) == ("open", ["not_confirmed"] * 2)


def test_to_have_signed_in_is_not_enough_and_to_confirm_the_password_is() -> None:
    gate = strict_gate()
    reviewer, client = reviewer_of(gate), Client()
    client.post("/accounts/login/", {"login": reviewer.username, "password": PASSWORD})
    led = send(client, gate)
    assert (led.status_code, status(gate)) == (303, "open")
    assert led["Location"].startswith("/accounts/reauthenticate/?next=%2Fgates%2F")
    confirm(client)
    assert send(client, gate).status_code == 303
    assert (status(gate), refusals(gate)) == ("decided", ["not_confirmed"])
    [told] = Event.objects.filter(kind="gate.decided", subject=gate.subject)
    at = dt.datetime.fromisoformat(json.loads(bytes(told.data))["confirmed"])
    assert abs(timezone.now() - at) < dt.timedelta(minutes=5)


def test_what_was_entered_is_there_again_with_the_forms_own_key() -> None:
    gate = strict_gate()
    client = signed_in(reviewer_of(gate))
    form = form_of(gate, "edit", **{AMOUNT: "80.00", "comment": "The shop's limit"})
    led = client.post(f"/gates/{gate.pk}/decisions/", form)
    asked = client.get(led["Location"])
    assert "Confirm who you are" in asked.content.decode()
    back = confirm(client, next=asked.context["redirect_field_value"])
    assert back["Location"] == f"/gates/{gate.pk}/?key={form['key']}#decide"
    page = client.get(back["Location"]).content.decode()
    for kept in ('value="80.00"', "The shop&#x27;s limit", form["key"], "You confirmed who you are"):
        assert kept in page
    assert client.post(f"/gates/{gate.pk}/decisions/", form).status_code == 303
    assert status(gate) == "decided"
    assert not Draft.objects.filter(gate=gate).exists()


def test_it_is_of_one_session_and_of_one_person() -> None:
    gate = strict_gate()
    reviewer = reviewer_of(gate)
    desk, train = signed_in(reviewer), signed_in(reviewer)
    confirm(desk)
    send(train, gate)
    assert status(gate) == "open", "another session of the same person"
    session = desk.session
    thief = make_user("Bob Lindqvist", gate.team)
    other = signed_in(thief)
    copied = other.session
    for name in ("account_authentication_methods", "account_authentication_methods_user"):
        copied[name] = session[name]
    copied.save()
    send(other, gate)
    assert status(gate) == "open", "another person's records"
    send(desk, gate)
    assert status(gate) == "decided"


def test_records_that_are_old_or_say_something_else_confirm_nothing() -> None:
    gate = strict_gate()
    reviewer = reviewer_of(gate)
    client = signed_in(reviewer)
    for record in (
        {"method": "password", "at": "now"},
        {"method": "password", "at": time.time(), "reauthenticated": "yes"},
        {"method": "password", "at": time.time() - 901, "reauthenticated": True},
        {"method": "password", "at": 1e300, "reauthenticated": True},
        ["reauthenticated"],
    ):
        session = client.session
        session["account_authentication_methods"] = [record]
        session["account_authentication_methods_user"] = str(reviewer.pk)
        session.save()
        send(client, gate)
        assert status(gate) == "open", record


def test_over_the_api_a_session_counts_that_confirmed_and_a_token_not_even_beside_its_cookie() -> None:
    gate = strict_gate()
    reviewer = reviewer_of(gate)
    client, (_, sent) = signed_in(reviewer), make_token(reviewer)
    assert client.get(f"/api/gates/{gate.pk}").json()["step_up"] is True
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve"}
    address = f"/api/gates/{gate.pk}/decisions"
    refused = client.post(address, body, content_type="application/json")
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    assert "open the gate's page and confirm" in refused.json()["detail"]
    confirm(client)
    headers = {"Authorization": f"Bearer {sent}"}
    refused = client.post(address, body, content_type="application/json", headers=headers)
    assert (refused.status_code, status(gate), refusals(gate)) == (403, "open", ["not_confirmed"] * 2)
    assert "confirm it there" in refused.json()["detail"]
    assert client.post(address, body, content_type="application/json").status_code == 201


def test_the_gate_says_beforehand_what_is_asked_and_of_whom_it_cannot_be() -> None:
    gate = strict_gate()
    page = signed_in(reviewer_of(gate)).get(f"/gates/{gate.pk}/").content.decode()
    assert "You will confirm who you are" in page
    assert "confirmation required" in page
    without = signed_in(make_user("Bob", gate.team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "nothing to confirm with" in without
    plain = make_gate(team=make_team())
    assert "confirm who you are" not in signed_in(ann(plain.team)).get(f"/gates/{plain.pk}/").content.decode()


def closed_to_tokens(*, tokens: bool = False) -> Gate:
    """A gate under a policy that people made in the administration."""
    policy = Policy(team=make_team(), name="refunds", tokens_decide=tokens)
    versions.write(policy, by=actors.SYSTEM)
    return make_gate(policy=policy)


def post_json(gate: Gate, by: User, path: str = "decisions") -> Any:
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve"}
    _, sent = make_token(by)
    return bearing(sent).post(f"/api/gates/{gate.pk}/{path}", body, content_type="application/json")


def test_a_token_is_refused_and_told_where_to_decide() -> None:
    gate = closed_to_tokens()
    by = ann(gate.team)
    for path in ("decisions", "impacts"):
        told = refusal(post_json(gate, by, path), 403)
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


def test_where_the_policy_takes_tokens_they_decide() -> None:
    for gate in (closed_to_tokens(tokens=True), make_gate(team=make_team())):
        assert post_json(gate, ann(gate.team)).status_code == 201
        shown = signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/").content.decode()
        assert "API token" not in shown
