"""Signing in by a device code: what a program gets for its code, when, and what ends it."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from agents import device_codes, tokens
from agents.errors import DeviceRefused, TooManyGuesses, WrongCode
from agents.models import DeviceRequest, Token
from checkpoints import actors
from checkpoints.models import Event
from tests.agents.api.test_doors import refusal
from tests.factories import ann, bob, make_team, make_user
from tests.factories.tokens import bearing
from tests.harness.racing_threads import meet_lock, race
from tests.harness.signed_in_clients import confirmed, signed_in

SCOPES = ["runs:read", "gates:read", "gates:decide"]
PASSWORD = "open sesame again"


def asked(client: Client | None = None, **more: Any) -> dict[str, Any]:
    """The codes that a program gets."""
    body = {"program": "holdpoint", "machine": "laptop", "scopes": SCOPES, **more}
    # From an address of its own: one may ask for few codes a minute.
    client = client or Client(REMOTE_ADDR=".".join(["10", *(str(secrets.randbelow(256)) for _ in range(3))]))
    answer = client.post("/api/device/codes", body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    told: dict[str, Any] = answer.json()
    return told


def poll(codes: dict[str, Any]) -> Any:
    body = {"device_code": codes["device_code"]}
    return Client().post("/api/device/tokens", body, content_type="application/json")


def row(codes: dict[str, Any]) -> DeviceRequest:
    return DeviceRequest.objects.get(device_digest=device_codes._digest(codes["device_code"]))


def age(codes: dict[str, Any], by: timedelta) -> None:
    """Let so much time pass for a request."""
    told = DeviceRequest.objects.filter(pk=row(codes).pk)
    told.update(created_at=F("created_at") - by, expires_at=F("expires_at") - by, polled_at=F("polled_at") - by)


def enter(client: Client, codes: dict[str, Any]) -> int:
    """Enter the code, and return the request's number."""
    answer = client.post("/device/codes/", {"code": codes["user_code"]})
    assert (answer.status_code, answer["Location"]) == (303, "/device/")
    return int(row(codes).pk)


def test_whoever_confirms_gives_a_token_that_opens_what_the_page_said() -> None:
    owner = ann(make_team())
    codes = asked(Client())
    assert re.fullmatch("[A-Z]{4}-[A-Z]{4}", codes["user_code"])
    assert codes["verification_uri_complete"] == f"{codes['verification_uri']}?code={codes['user_code']}"
    assert (codes["expires_in"], codes["interval"]) == (600, 5)
    assert refusal(poll(codes), 400)["code"] == "authorization_pending"
    client = confirmed(owner)
    number = enter(client, codes)
    shown = client.get("/device/").content.decode()
    for words in ("Ann Okafor", "holdpoint", "laptop", "Decide gates as the person", "Confirm only what you started"):
        assert words in shown
    assert "the same address as this browser" in shown
    assert "Signed in" in client.post("/device/confirmations/", {"request": number}).content.decode()
    answer = poll(codes)
    assert answer.status_code == 201
    told = answer.json()
    columns = DeviceRequest.objects.values_list().get(pk=number)
    held = repr([bytes(each) if isinstance(each, memoryview) else each for each in columns])
    for secret in (codes["device_code"], codes["user_code"], codes["user_code"].replace("-", "").lower()):
        assert secret not in held
    assert told["access_token"] not in held
    assert (told["token_type"], told["user"], told["scope"]) == ("Bearer", "Ann Okafor", " ".join(sorted(SCOPES)))
    assert bearing(told["access_token"]).get("/api/gates").status_code == 200
    made = Token.objects.get(user=owner)
    assert (made.name, made.agent, made.team) == ("holdpoint on laptop", "", None)
    told = Event.objects.filter(subject__in=[f"device:{number}", made.subject]).order_by("pk")
    assert [event.kind for event in told] == ["device.confirmed", "token.created"]
    assert refusal(poll(codes), 400)["code"] == "invalid_grant"


def test_a_poll_that_comes_too_soon_waits_longer_from_then_on() -> None:
    codes = asked()
    assert refusal(poll(codes), 400)["code"] == "authorization_pending"
    assert refusal(poll(codes), 400)["code"] == "slow_down"
    assert row(codes).interval == timedelta(seconds=10)
    age(codes, timedelta(seconds=6))
    assert refusal(poll(codes), 400)["code"] == "slow_down"
    age(codes, timedelta(seconds=16))
    assert refusal(poll(codes), 400)["code"] == "authorization_pending"


def test_an_expired_code_is_told_from_a_refused_and_an_unknown_one() -> None:
    owner = ann(make_team())
    late, refused = asked(), asked()
    age(late, timedelta(minutes=11))
    assert refusal(poll(late), 400)["code"] == "expired_token"
    assert not device_codes.confirm(row(late), by=owner)
    client = signed_in(owner)
    number = enter(client, refused)
    assert "Refused" in client.post("/device/refusals/", {"request": number}).content.decode()
    assert refusal(poll(refused), 400)["code"] == "access_denied"
    assert refusal(poll({"device_code": "x" * 43}), 400)["code"] == "invalid_grant"
    assert not Token.objects.filter(user=owner).exists()


def test_what_was_confirmed_in_the_last_second_can_still_be_collected_and_not_for_who_was_switched_off() -> None:
    owner = ann(make_team())
    for active in (True, False):
        codes = asked()
        age(codes, timedelta(minutes=9, seconds=59))
        assert device_codes.confirm(row(codes), by=owner)
        age(codes, timedelta(seconds=30))
        owner.is_active = active
        owner.save()
        if active:
            assert poll(codes).status_code == 201
        else:
            assert refusal(poll(codes), 400)["code"] == "access_denied"
        assert Token.objects.filter(user=owner).count() == 1


def test_confirming_takes_the_password_again_and_comes_back_to_the_request() -> None:
    owner = make_user("Ann Okafor", make_team(), password=PASSWORD)
    client, codes = signed_in(owner), asked()
    number = enter(client, codes)
    answer = client.post("/device/confirmations/", {"request": number})
    assert (answer.status_code, answer["Location"]) == (303, "/accounts/reauthenticate/?next=%2Fdevice%2F")
    assert row(codes).status == "pending"
    back = client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": "/device/"}, follow=True)
    assert "You confirmed who you are" in back.content.decode()
    assert "Signed in" in client.post("/device/confirmations/", {"request": number}).content.decode()
    assert poll(codes).status_code == 201


def test_an_account_without_a_password_is_told_whom_to_ask() -> None:
    client, codes = signed_in(ann(make_team())), asked()
    answer = client.post("/device/confirmations/", {"request": enter(client, codes)})
    assert answer.status_code == 422
    assert "nothing to confirm with" in answer.content.decode()
    assert row(codes).status == "pending"


def test_nobody_confirms_a_request_whose_code_they_did_not_enter() -> None:
    """By its number alone a person would confirm what they never saw."""
    codes, client = asked(), confirmed(ann(make_team()))
    for form in ({"request": row(codes).pk}, {}, {"request": "None"}):
        assert client.post("/device/confirmations/", form).status_code == 409
    mine = asked()
    enter(client, mine)
    assert client.post("/device/confirmations/", {"request": row(codes).pk}).status_code == 409
    assert client.post("/device/refusals/", {"request": row(codes).pk}).status_code == 409
    assert (row(codes).status, row(mine).status) == ("pending", "pending")


def test_opening_the_address_with_the_code_orders_nothing() -> None:
    codes, client = asked(), confirmed(ann(make_team()))
    shown = client.get("/device/", {"code": codes["user_code"]}).content.decode()
    assert f'value="{codes["user_code"]}"' in shown
    assert "laptop" not in shown
    assert row(codes).status == "pending"


def test_five_wrong_codes_and_none_is_looked_at_for_a_while() -> None:
    owner, codes = ann(make_team()), asked()
    client = signed_in(owner)
    for _ in range(5):
        answer = client.post("/device/codes/", {"code": "BBBB-BBBB"})
        assert answer.status_code == 422
        assert "No program waits under this code" in answer.content.decode()
    answer = client.post("/device/codes/", {"code": codes["user_code"]})
    assert (answer.status_code, "Wait five minutes" in answer.content.decode()) == (429, True)
    code, other = codes["user_code"], bob(make_team())
    for typed in (code, code.lower(), code.replace("-", " "), f"  {code} "):
        assert device_codes.find(typed, by=other).pk == row(codes).pk
    assert Event.objects.filter(kind="device.mistyped", actor=f"user:{owner.pk}").count() == 5


def test_many_guesses_at_once_are_not_more_than_five() -> None:
    """Each looked before the others were counted."""
    owner = ann(make_team())
    told = race([lambda: device_codes.find("BBBB-BBBB", by=owner)] * 12)
    assert sorted(type(each).__name__ for each in told) == ["TooManyGuesses"] * 7 + ["WrongCode"] * 5
    assert all(isinstance(each, (WrongCode, TooManyGuesses)) for each in told)


def test_of_confirmations_and_a_refusal_at_once_one_counts() -> None:
    codes, people = asked(), [ann(make_team()), bob(make_team())]
    told = race([
        *[lambda by=by: device_codes.confirm(row(codes), by=by) for by in people],
        lambda: device_codes.refuse(row(codes), by=people[0]),
    ])  # fmt: skip
    assert sorted(told) == [False, False, True]
    assert row(codes).status == ("refused" if told[2] else "confirmed")
    assert told[2] or row(codes).user == people[told.index(True)]
    assert Event.objects.filter(kind="device.confirmed", subject=row(codes).subject).count() == (not told[2])


def test_a_confirmation_that_meets_the_expiry_loses() -> None:
    codes, owner = asked(), ann(make_team())
    request = row(codes)
    expire = lambda: age(codes, timedelta(minutes=11))  # noqa: E731
    assert meet_lock(expire, lambda: device_codes.confirm(request, by=owner)) is False
    assert row(codes).status == "pending"
    assert refusal(poll(codes), 400)["code"] == "expired_token"


def test_of_polls_at_once_one_gets_the_token() -> None:
    codes, owner = asked(), ann(make_team())
    assert device_codes.confirm(row(codes), by=owner)
    told = race([lambda: device_codes.collect(codes["device_code"])] * 6)
    got = [each for each in told if not isinstance(each, Exception)]
    assert len(got) == 1
    assert {each.code for each in told if isinstance(each, DeviceRefused)} <= {"invalid_grant"}
    assert Token.objects.filter(user=owner).count() == 1


def test_an_address_that_asks_for_codes_again_and_again_is_stopped() -> None:
    client = Client(REMOTE_ADDR="203.0.113.77")
    # Where Redis answers too late a request is counted by its process, so that one may get a few more.
    for _ in range(60):
        answer = client.post("/api/device/codes", {"scopes": SCOPES}, content_type="application/json")
        if answer.status_code != 201:
            break
    assert "of this kind from your address" in refusal(answer, 429)["detail"]
    assert answer["Retry-After"]


def test_another_address_is_pointed_out_and_what_a_program_says_of_itself_is_shown_as_its_words() -> None:
    codes = asked(Client(REMOTE_ADDR="203.0.113.5"), program="Holdpoint\u202e\x1b[2J", machine="<b>yours</b>")
    client = signed_in(ann(make_team()))
    enter(client, codes)
    shown = client.get("/device/").content.decode()
    assert "203.0.113.5" in shown
    assert "another address than this browser" in shown.replace("&#x27;", "'")
    for hostile in ("<b>yours</b>", "\u202e", "\x1b"):
        assert hostile not in shown


@pytest.mark.parametrize(
    "changes", [{"scopes": []}, {"scopes": ["everything"]}, {"days": 91}, {"days": 0}, {"user": "ann"}]
)
def test_what_cannot_be_asked_for_is_named(changes: dict[str, Any]) -> None:
    body = {"scopes": SCOPES, **changes}
    answer = Client().post("/api/device/codes", body, content_type="application/json")
    assert next(iter(changes)) in refusal(answer, 422)["errors"][0]["parameter"]


def test_a_token_revokes_itself_whatever_its_scopes_are() -> None:
    owner = ann(make_team())
    _, sent = tokens.issue(
        owner=owner, name="x", scopes=["gates:read"], lasts=timedelta(days=1), by=actors.of_user(owner)
    )
    client = bearing(sent)
    assert client.post("/api/device/revocations").json() == {"revoked": True}
    assert client.get("/api/gates").status_code == 401
    refusal(client.post("/api/device/revocations"), 401)
    refusal(signed_in(owner).post("/api/device/revocations"), 401)
    assert Event.objects.filter(kind="token.revoked", actor=f"user:{owner.pk}").count() == 1
