"""Wrong codes are counted by where they come from, so that whoever knows the password shuts its owner out of nothing.

Five wrong codes of a stranger, from anywhere, kept the owner from every code and every passkey for five minutes, sixty
for the day. Right ones counted too. And each web process counted alone; the counts are in Redis, as data that runs
nothing when it is read.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import redis
from allauth.core.internal import ratelimit
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.core.cache import cache, caches
from django.test import Client, RequestFactory, override_settings
from django.utils import timezone

from agents.models.token import TokenScope
from approvals.accounts import required
from approvals.assignments import away
from approvals.live.access import access_of
from approvals.models import Gate
from approvals.policy import authority
from config.sign_in import attempts, factors
from config.sign_in.providers import Provider
from tests.config.sign_in.test_factors import (
    PASSWORD,
    add_app,
    code_of,
    first_step,
    fresh_limits,
    is_in,
    person,
    second_step,
)
from tests.config.sign_in.test_passkeys import answer
from tests.factories import make_gate, make_policy, make_team, make_user
from tests.factories.people import READER, REVIEWER
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import confirmed, form_of, signed_in

__all__ = ["fresh_limits"]
REFUSED = "Too many tries"


def at(address: str, user: Any, *, known: Client | None = None) -> Client:
    """Give the password at this address, in a new browser or in one with the cookies of `known`."""
    client = Client(REMOTE_ADDR=address)
    if known is not None:
        client.cookies["hp-device"] = known.cookies["hp-device"].value
    sent = client.post("/accounts/login/", {"login": user.username, "password": PASSWORD})
    assert sent["Location"] == "/accounts/second-step/"
    return client


def tried(client: Client, code: str) -> str:
    """Send a code as the second step: "in", "wrong", or "refused" without being looked at."""
    sent = client.post("/accounts/second-step/", {"code": code})
    if is_in(client):
        return "in"
    return "refused" if REFUSED in sent.content.decode() else "wrong"


def guessed(user: Any, address: str, count: int) -> list[str]:
    client = at(address, user)
    return [tried(client, f"{number:06d}") for number in range(count)]


def codes_of(user: Any) -> list[str]:
    found: list[str] = Authenticator.objects.get(user=user, type="recovery_codes").wrap().get_unused_codes()
    return found


def fill(user: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guess from very many addresses, until no strange place is looked at."""
    monkeypatch.setattr(factors, "WRONG_CODES_AT_STRANGERS", "6/d/key")
    assert [guessed(user, f"198.51.100.{number}", 3) for number in range(2)] == [["wrong"] * 3] * 2
    assert guessed(user, "198.51.100.9", 1) == ["refused"], "all of them together have an end"


def test_a_stranger_who_knows_the_password_does_not_shut_its_owner_out() -> None:
    user = person()
    secret = add_app(confirmed(user))
    assert guessed(user, "198.51.100.7", 6) == [*["wrong"] * 5, "refused"]
    assert tried(at("198.51.100.7", user), code_of(secret, 1)) == "refused", "right or wrong"
    assert tried(at("203.0.113.1", user), code_of(secret, 1)) == "in"


@pytest.mark.parametrize(
    ("sent", "place"), [("::ffff:203.0.113.1", "203.0.113.1"), ("2001:db8:1:2::7", "2001:db8:1:2::/64")]
)
def test_an_address_of_ipv4_that_is_written_as_one_of_ipv6_is_a_place_of_its_own(sent: str, place: str) -> None:
    """All of them were one place, "::", as a server that listens on both writes them."""
    assert ratelimit.get_ip(RequestFactory().post("/", REMOTE_ADDR=sent)) == place


def test_guesses_from_very_many_addresses_have_an_end_and_known_places_stay_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = person()
    owner = confirmed(user)
    secret = add_app(owner)
    first, second, *_ = codes_of(user)
    known = at("203.0.113.1", user)
    assert tried(known, first) == "in"
    fill(user, monkeypatch)
    assert tried(at("203.0.113.2", user), second) == "refused", "an end that holds for the owner in a new place too"
    assert tried(at("203.0.113.2", user, known=known), second) == "in"
    sent = owner.post("/accounts/reauthenticate/code/", {"code": code_of(secret, 1)})
    assert sent.status_code == 302, "whoever is signed in confirms by a code"


def test_a_browser_is_known_once_a_second_factor_was_proved_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever had the password before the app was added may have signed in, and kept any number of cookies."""
    user = person()
    thief = Client()
    assert thief.post("/accounts/login/", {"login": user.username, "password": PASSWORD})["Location"] == "/"
    add_app(confirmed(user))
    fill(user, monkeypatch)
    assert tried(at("198.51.100.8", user, known=thief), codes_of(user)[0]) == "refused"


def test_a_session_without_a_second_factor_is_a_stranger() -> None:
    """It shared the owner's count: whoever had the password shut the owner out of every confirmation by a code."""
    user = person()
    owner = confirmed(user)
    secret = add_app(owner)
    thief = signed_in(user)
    sent = [confirm(thief, f"{number:06d}") for number in range(6)]
    assert [REFUSED in each for each in sent] == [*[False] * 5, True]
    assert confirm(owner, code_of(secret, 1)) == ""
    cache.clear()
    said = [confirm(owner, f"{number:06d}") for number in range(6)]
    assert [REFUSED in each for each in said] == [*[False] * 5, True], "a known place has a limit of its own"


def confirm(client: Client, code: str) -> str:
    """Confirm by a code; "" where it was taken, else what the page says."""
    sent = client.post("/accounts/reauthenticate/code/", {"code": code})
    return "" if sent.status_code == 302 else str(sent.content.decode())


def test_a_passkey_cannot_be_guessed_and_is_not_counted() -> None:
    user = person()
    secret = add_app(confirmed(user))
    client = at("203.0.113.1", user)
    for _ in range(7):
        sent = client.post("/accounts/second-step/", {"credential": answer()})
        assert REFUSED not in sent.content.decode()
    assert tried(client, code_of(secret, 1)) == "in"


def test_right_tries_and_those_that_are_refused_count_nowhere() -> None:
    """A reviewer who confirmed rightly sixty times was shut out for the day; tries that strangers' guesses had refused
    used up the owner's own place.
    """
    request, everywhere, place = RequestFactory().post("/"), ("1/d/key", "everywhere"), ("3/d/key", "a place")
    for _ in range(7):
        used = attempts.count_try(request, "factor", place)
        assert used is not None
        used.rollback()
    assert attempts.count_try(request, "factor", everywhere) is not None
    assert [attempts.count_try(request, "factor", place, everywhere) for _ in range(4)] == [None] * 4
    assert [attempts.count_try(request, "factor", place) is None for _ in range(4)] == [False, False, False, True]


def wrong(client: Client, name: str) -> str:
    return client.post("/accounts/login/", {"login": name, "password": "no"}).content.decode()


def test_another_web_process_knows_of_the_wrong_passwords(redis_url: str) -> None:
    user = person()
    for _ in range(5):
        wrong(Client(), user.username)
    assert "oo many" in wrong(Client(), user.username)
    assert [*redis.Redis.from_url(redis_url).scan_iter("holdpoint:*:allauth:rl:*")]
    redis.Redis.from_url(redis_url).set(cache.make_key("counts"), pickle.dumps([1]))
    with pytest.raises(ValueError, match="utf"):
        cache.get("counts")  # what somebody pickled is not run


def test_without_redis_nobody_signs_in_and_the_page_says_so() -> None:
    user = person()
    away = {"default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}}
    with override_settings(CACHES=away):
        caches.close_all()
        answer = Client(raise_request_exception=False).post(
            "/accounts/login/", {"login": user.username, "password": PASSWORD}
        )
    assert answer.status_code == 503
    assert "sign in" in answer.content.decode()


def key_of(client: Any) -> str:
    return str(client.cookies["sessionid"].value)


def test_of_whom_it_is_required(settings: Any) -> None:
    reader, decider = make_user("Reader", make_team(may=READER)), make_user("Decider", make_team(may=REVIEWER))
    staff, boss = make_user("Sam Staff", staff=True), make_user("Root", superuser=True)
    for whom, number in (("", 0), ("staff", 2), ("deciders", 3), ("everybody", 4)):
        settings.HOLDPOINT_MFA_REQUIRED = whom
        people = (boss, staff, decider, reader)
        assert [required.of_whom(each) for each in people] == [at < number for at in range(4)]


def test_whom_a_policy_names_decides_and_needs_one(settings: Any) -> None:
    """Whoever decided without a team's permission did so with the password alone."""
    settings.HOLDPOINT_MFA_REQUIRED = "deciders"
    named, before, waiting = (make_user(name, make_team("Readers", may=READER)) for name in ("Nina", "Bo", "Wim"))
    team = make_team()
    gate = make_gate(policy=make_policy(team, name="named", people=(named, waiting)))
    make_policy(team, name="older", people=(before,))
    make_policy(team, name="older", people=(named,), version=2)
    assert authority.why_not(named, gate) == ""
    make_policy(team, name="named", people=(named,), version=2)
    assert required.of_whom(named)
    assert required.of_whom(waiting), "an open gate keeps the version that names them"
    assert not required.of_whom(before), "a version that counts for nothing any more asks for nothing"


def test_whoever_stands_in_for_a_decider_needs_one(settings: Any) -> None:
    settings.HOLDPOINT_MFA_REQUIRED = "deciders"
    deciders, common = make_team(may=REVIEWER), make_team("Common", may=READER)
    gate = make_gate(policy=make_policy(deciders))
    away_now, nina = make_user("Ann", deciders, common), make_user("Nina", common)
    assert not required.of_whom(nina)
    now = timezone.now()
    away.make(away_now, delegate=nina, starts=now - timedelta(minutes=1), ends=now + timedelta(days=2))
    assert authority.why_not(nina, gate) == ""
    assert required.of_whom(nina)


def test_a_token_of_somebody_without_one_opens_nothing_until_they_add_one(settings: Any) -> None:
    """A token made before, or by a device's code, went on deciding for all its days."""
    settings.HOLDPOINT_MFA_REQUIRED = "everybody"
    team = make_team()
    user = make_user("Ann Okafor", team, password=PASSWORD)
    _, own = make_token(user)
    _, program = make_token(user, team=team, agent="refunds")
    refused = bearing(own).get("/api/gates")
    assert (refused.status_code, refused.json()["code"]) == (403, "second_factor")
    assert "/account/security/" in refused.json()["detail"]
    assert bearing(program).get("/api/gates").status_code == 200, "an agent's decides nothing, and goes on"
    assert bearing(own).post("/api/device/revocations").status_code == 200
    _, own = make_token(user)
    add_app(confirmed(user))
    assert bearing(own).get("/api/gates").status_code == 200


def test_a_providers_word_is_a_factor_of_a_token_too(settings: Any) -> None:
    settings.HOLDPOINT_MFA_REQUIRED = "everybody"
    user = make_user("Ann Okafor")
    _, own = make_token(user)
    SocialAccount.objects.create(user=user, provider="corp", uid="ann")
    provider = Provider(name="corp", label="Corp", issuer="https://corp.example", client_id="h", secret="s")
    for vouches, status in ((False, 403), (True, 200)):
        settings.HOLDPOINT_OIDC = {"corp": replace(provider, vouches=vouches)}
        assert bearing(own).get("/api/gates").status_code == status


def test_a_token_of_one_team_asks_for_what_its_owner_needs(settings: Any) -> None:
    """One whose team only reads opened what it reads, though its owner decides in another team and has no factor."""
    settings.HOLDPOINT_MFA_REQUIRED = "deciders"
    reads = make_team("Readers", may=READER)
    user = make_user("Dora", reads, make_team(may=REVIEWER))
    _, sent = make_token(user, str(TokenScope.READ), team=reads)
    assert bearing(sent).get("/api/runs").status_code == 403


def test_nothing_opens_before_one_is_added_and_everything_after(settings: Any) -> None:
    settings.HOLDPOINT_MFA_REQUIRED = "deciders"
    gate = make_gate()
    user = make_user("Ann Okafor", gate.team, password=PASSWORD)
    client = confirmed(user)
    for address in ("/", f"/gates/{gate.pk}/", "/account/", "/admin/", "/tokens/", "/runs/", "/device/"):
        assert client.get(address)["Location"] == "/account/security/", address
    assert "Your account needs a second factor" in client.get("/account/security/").content.decode()
    refused = client.post(f"/gates/{gate.pk}/decisions/", form_of(gate))
    assert (refused.status_code, Gate.objects.get(pk=gate.pk).status) == (403, "open")
    assert client.get("/api/gates").status_code == 403
    assert client.get("/inbox/list/", headers={"HX-Request": "true"}).status_code == 403
    assert access_of(key_of(client)) is None, "nothing is heard on the live socket"
    other = signed_in(user)
    add_app(client)
    assert not is_in(other), "another session without it stays shut"
    assert client.get("/").status_code == 200
    assert access_of(key_of(client)) is not None
    assert client.post(f"/gates/{gate.pk}/decisions/", form_of(gate)).status_code == 303


def test_recovery_codes_that_were_replaced_prove_nothing_any_more(settings: Any) -> None:
    """Whoever was signed in by one of the old codes stayed so, with a second factor that the account has no more."""
    settings.HOLDPOINT_MFA_REQUIRED = "everybody"
    user = make_user("Ann Okafor", password=PASSWORD)
    owner = confirmed(user)
    add_app(owner)
    here, there = first_step(user), first_step(user)
    for client, code in zip((here, there), codes_of(user), strict=False):
        second_step(client, code)
        assert client.get("/").status_code == 200
    here.post("/accounts/reauthenticate/", {"password": PASSWORD})
    assert here.post("/account/security/recovery-codes/new/")["Location"] == "/account/security/recovery-codes/"
    assert len(codes_of(user)) == 10
    for client in (there, owner):
        assert client.get("/")["Location"].startswith("/accounts/login/"), "as where a factor is removed"
    assert here.get("/")["Location"] == "/account/security/", "signed in still, without a second factor"


def test_unlinking_a_provider_ends_what_it_opened(settings: Any) -> None:
    """Sessions that it had opened went on, and its word still counted as a second factor in them."""
    settings.HOLDPOINT_OIDC, settings.HOLDPOINT_MFA_REQUIRED = {}, "everybody"
    user = make_user("Ann Okafor", password=PASSWORD)
    link = SocialAccount.objects.create(user=user, provider="corp", uid="ann, linked")
    here, there = confirmed(user), confirmed(user)
    for client in (here, there):
        session = client.session
        session["account_authentication_methods"] += [{"method": "socialaccount", "provider": "corp", "at": 1.0}]
        session[required.TRUSTED] = True
        session.save()
        assert client.get("/").status_code == 200
    assert here.post(f"/account/security/providers/{link.pk}/removals/").status_code == 302
    assert there.get("/")["Location"].startswith("/accounts/login/")
    assert here.get("/")["Location"] == "/account/security/", "signed in still, without a second factor"
