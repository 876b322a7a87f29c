"""Where a policy asks for the password again, nothing else lets a decision count."""

from __future__ import annotations

import datetime as dt
import json
import time
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from approvals.accounts.factors import ProofMethod
from approvals.errors import NotAllowed, NotConfirmed
from approvals.models import Draft, Gate, Policy
from approvals.policy.step_up import PASSKEY, Confirmed, counts
from checkpoints.models import Event
from tests.factories import ann, bob, decide, edit_amount, eve, make_gate, make_policy, make_team, make_user
from tests.factories.tokens import make_token
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


@pytest.mark.parametrize(
    ("since", "enough"),
    [(0.0, True), (14.9, True), (15.0, False), (600.0, False), (-0.5, True), (-1.1, False)],
    ids=lambda each: str(each),
)
def test_it_counts_for_some_minutes_and_not_from_the_future(since: float, enough: bool) -> None:
    by = ann()
    assert counts(by_password(by.pk, NOW - dt.timedelta(minutes=since)), by=by, now=NOW) is enough


def test_anothers_is_none() -> None:
    by = ann()
    assert not counts(by_password(bob().pk, NOW), by=by, now=NOW)
    assert not counts(None, by=by, now=NOW)


def test_a_policy_may_take_a_passkey_alone_and_no_policy_takes_a_recovery_code() -> None:
    by = ann()
    said = Confirmed(by.pk, {ProofMethod.PASSWORD: NOW, ProofMethod.CODE: NOW, ProofMethod.RECOVERY_CODE: NOW})
    assert counts(said, by=by, now=NOW)
    assert not counts(said, by=by, now=NOW, asked=PASSKEY)
    assert counts(Confirmed(by.pk, {ProofMethod.PASSKEY: NOW}), by=by, now=NOW, asked=PASSKEY)
    assert not counts(Confirmed(by.pk, {ProofMethod.RECOVERY_CODE: NOW}), by=by, now=NOW)
    assert not counts(Confirmed(by.pk, {ProofMethod.PROVIDER: NOW}), by=by, now=NOW)


@pytest.mark.parametrize("path", ["page", "api"])
def test_a_password_is_no_passkey(path: str) -> None:
    gate = make_gate(policy=make_policy(make_team(), step_up=True, step_up_method="passkey"))
    client = signed_in(reviewer_of(gate))
    confirm(client)
    if path == "page":
        assert send(client, gate)["Location"].startswith("/accounts/reauthenticate/passkey/?next=%2Fgates%2F")
    else:
        body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve"}
        refused = client.post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")
        assert (refused.status_code, "your passkey" in refused.json()["detail"]) == (403, True)
    assert (status(gate), refusals(gate)) == ("open", ["not_confirmed"])


@override_settings(HOLDPOINT_STEP_UP_MINUTES=1.5)
def test_how_long_is_a_setting() -> None:
    by = ann()
    assert counts(by_password(by.pk, NOW - dt.timedelta(seconds=89)), by=by, now=NOW)
    assert not counts(by_password(by.pk, NOW - dt.timedelta(seconds=90)), by=by, now=NOW)


@pytest.mark.parametrize("verdict", ["approve", "reject", "edit"])
def test_model_code_without_evidence_is_refused_whatever_it_says_and_the_audit_has_it(verdict: str) -> None:
    gate = strict_gate()
    said = {"arguments": edit_amount(gate, "5.00")} if verdict == "edit" else {}
    with pytest.raises(NotConfirmed, match="open the gate's page"):
        decide(gate, reviewer_of(gate), verdict, **said)
    assert (status(gate), refusals(gate)) == ("open", ["not_confirmed"])


def test_whoever_may_not_decide_is_told_that_and_not_to_confirm_anything() -> None:
    with pytest.raises(NotAllowed):
        decide(strict_gate(), eve())


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


def test_what_is_too_long_to_be_kept_stays_on_the_page() -> None:
    gate = strict_gate()
    long = "x" * 1_000_001
    answer = send(signed_in(reviewer_of(gate)), gate, verdict="edit", **{"args.refund/reply": long})
    assert answer.status_code == 403
    assert "asks you to confirm who you are" in answer.content.decode()
    assert long in answer.content.decode()


def test_a_wrong_password_confirms_nothing() -> None:
    gate = strict_gate()
    client = signed_in(reviewer_of(gate))
    assert confirm(client, "guessed").status_code == 200
    send(client, gate)
    assert status(gate) == "open"


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


def test_the_session_has_another_key_afterwards_and_the_old_one_is_nobodys() -> None:
    gate = strict_gate()
    client = signed_in(reviewer_of(gate))
    before = client.cookies[settings.SESSION_COOKIE_NAME].value
    confirm(client)
    assert client.cookies[settings.SESSION_COOKIE_NAME].value != before
    old = Client()
    old.cookies[settings.SESSION_COOKIE_NAME] = before
    assert old.get("/")["Location"].startswith("/accounts/login/")
    send(old, gate)
    assert status(gate) == "open"


@pytest.mark.parametrize(
    "record",
    [
        {"method": "password", "at": "now"},
        {"method": "password", "at": 0, "reauthenticated": False},
        {"method": "password", "at": 0, "reauthenticated": "yes"},
        {"method": "password", "at": -901, "reauthenticated": True},
        {"method": "password", "at": "soon", "reauthenticated": True},
        {"method": "password", "at": 1e300, "reauthenticated": True},
        {"method": "password", "reauthenticated": True},
        ["reauthenticated"],
    ],
    ids=str,
)
def test_records_that_are_old_or_say_something_else_confirm_nothing(record: Any) -> None:
    gate = strict_gate()
    reviewer = reviewer_of(gate)
    client = signed_in(reviewer)
    if isinstance(record, dict) and isinstance(record.get("at"), int):
        record = {**record, "at": time.time() + record["at"]}
    session = client.session
    session["account_authentication_methods"] = [record]
    session["account_authentication_methods_user"] = str(reviewer.pk)
    session.save()
    send(client, gate)
    assert status(gate) == "open"


def test_each_of_a_quorum_confirms_their_own() -> None:
    gate = strict_gate(quorum=2)
    first, second = signed_in(reviewer_of(gate)), signed_in(make_user("Bob", gate.team, password=PASSWORD))
    confirm(first)
    send(first, gate)
    send(second, gate)
    assert status(gate) == "open"
    confirm(second)
    send(second, gate)
    assert status(gate) == "decided"


def test_over_the_api_a_session_counts_that_confirmed_and_no_other() -> None:
    gate = strict_gate()
    client = signed_in(reviewer_of(gate))
    assert client.get(f"/api/gates/{gate.pk}").json()["step_up"] is True
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve"}
    address = f"/api/gates/{gate.pk}/decisions"
    refused = client.post(address, body, content_type="application/json")
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    assert "open the gate's page and confirm" in refused.json()["detail"]
    confirm(client)
    assert client.post(address, body, content_type="application/json").status_code == 201


def test_a_token_never_counts_not_even_beside_the_cookie_of_a_session_that_confirmed() -> None:
    gate = strict_gate()
    reviewer = reviewer_of(gate)
    client = signed_in(reviewer)
    confirm(client)
    _, sent = make_token(reviewer)
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "approve"}
    headers = {"Authorization": f"Bearer {sent}"}
    refused = client.post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json", headers=headers)
    assert (refused.status_code, status(gate), refusals(gate)) == (403, "open", ["not_confirmed"])
    assert "confirm it there" in refused.json()["detail"]


def test_a_gate_keeps_the_policy_that_it_was_opened_under() -> None:
    """Somebody who may write policies could lower what an open gate asks."""
    gate = strict_gate()
    make_policy(gate.team, version=2)
    assert Policy.objects.named("refunds", team=gate.team).version == 2
    with pytest.raises(NotConfirmed):
        decide(gate, reviewer_of(gate))


def test_the_administration_writes_it_and_the_audit_says_so() -> None:
    team = make_team()
    ann(team)
    policy = make_policy(team)
    ticked = dict.fromkeys(("separation", "step_up", "reason_required", "tokens_decide"), "on")
    form = {"quorum": 1, "deadline": "", "on_expiry": "expire", "hourly": 120, "pause": "10 min", **ticked}
    form["step_up_method"] = "passkey"
    form |= {"bulk_risk": "low", "remind_share": 25, "leaves": "title"}
    client = signed_in(make_user("Root", superuser=True))
    assert client.post(reverse("admin:approvals_policy_change", args=[policy.pk]), form).status_code == 302
    assert Policy.objects.named("refunds", team=team).step_up
    told = Event.objects.get(kind="policy.changed", team_id=team.pk)
    assert json.loads(bytes(told.data))["step_up"] is True


def test_the_gate_says_beforehand_what_is_asked_and_of_whom_it_cannot_be() -> None:
    gate = strict_gate()
    page = signed_in(reviewer_of(gate)).get(f"/gates/{gate.pk}/").content.decode()
    assert "You will confirm who you are" in page
    assert "confirmation required" in page
    without = signed_in(make_user("Bob", gate.team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "nothing to confirm with" in without
    plain = make_gate(team=make_team())
    assert "confirm who you are" not in signed_in(ann(plain.team)).get(f"/gates/{plain.pk}/").content.decode()
