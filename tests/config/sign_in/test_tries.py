"""Wrong codes are counted by where they come from, so that whoever knows the password shuts its owner out of nothing.

Five wrong codes of a stranger, from anywhere, kept the owner from every code and every passkey for five minutes, sixty
for the day. Right ones counted too. And each web process counted alone; the counts are in Redis, as data that runs
nothing when it is read.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import redis
from allauth.core.internal import ratelimit
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.core.cache import cache, caches
from django.test import Client, RequestFactory, override_settings

from config.sign_in import attempts, factors
from tests.config.sign_in.test_factors import PASSWORD, add_app, code_of, fresh_limits, is_in, person
from tests.config.sign_in.test_passkeys import answer
from tests.harness.signed_in_clients import confirmed, signed_in

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


def test_a_household_of_ipv6_is_one_place() -> None:
    user = person()
    add_app(confirmed(user))
    found = [guessed(user, f"2001:db8:1:2::{number:x}", 1) for number in range(6)]
    assert found == [*[["wrong"]] * 5, ["refused"]]


@pytest.mark.parametrize(
    ("sent", "place"),
    [
        ("::ffff:203.0.113.1", "203.0.113.1"), ("203.0.113.1", "203.0.113.1"),
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
    ],
)  # fmt: skip
def test_an_address_of_ipv4_that_is_written_as_one_of_ipv6_is_a_place_of_its_own(sent: str, place: str) -> None:
    """All of them were one place, "::", as a server that listens on both writes them."""
    assert ratelimit.get_ip(RequestFactory().post("/", REMOTE_ADDR=sent)) == place


def test_a_stranger_of_ipv4_shuts_no_other_out_where_the_server_writes_it_as_ipv6() -> None:
    user = person()
    secret = add_app(confirmed(user))
    assert guessed(user, "::ffff:198.51.100.7", 6)[-1] == "refused"
    assert tried(at("::ffff:203.0.113.1", user), code_of(secret, 1)) == "in"


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


def test_a_session_of_before_the_first_factor_ends_with_it() -> None:
    user = person()
    there, owner = signed_in(user), confirmed(user)
    assert is_in(there)
    add_app(owner)
    assert not is_in(there)
    assert is_in(owner)


def test_a_session_without_a_second_factor_is_a_stranger() -> None:
    """It shared the owner's count: whoever had the password shut the owner out of every confirmation by a code."""
    user = person()
    owner = confirmed(user)
    secret = add_app(owner)
    thief = signed_in(user)
    sent = [confirm(thief, f"{number:06d}") for number in range(6)]
    assert [REFUSED in each for each in sent] == [*[False] * 5, True]
    assert confirm(owner, code_of(secret, 1)) == ""


def confirm(client: Client, code: str) -> str:
    """Confirm by a code; "" where it was taken, else what the page says."""
    sent = client.post("/accounts/reauthenticate/code/", {"code": code})
    return "" if sent.status_code == 302 else str(sent.content.decode())


def test_a_known_place_has_a_limit_of_its_own() -> None:
    user = person()
    owner = confirmed(user)
    secret = add_app(owner)
    for number in range(5):
        owner.post("/accounts/reauthenticate/code/", {"code": f"{number:06d}"})
    sent = owner.post("/accounts/reauthenticate/code/", {"code": code_of(secret, 1)})
    assert REFUSED in sent.content.decode()


def test_a_passkey_cannot_be_guessed_and_is_not_counted() -> None:
    user = person()
    secret = add_app(confirmed(user))
    client = at("203.0.113.1", user)
    for _ in range(7):
        sent = client.post("/accounts/second-step/", {"credential": answer()})
        assert REFUSED not in sent.content.decode()
    assert tried(client, code_of(secret, 1)) == "in"


def test_right_tries_do_not_count() -> None:
    """A reviewer who confirmed rightly sixty times was shut out for the day."""
    request = RequestFactory().post("/")
    for _ in range(7):
        used = attempts.count_try(request, "factor", ("3/d/key", "a place"))
        assert used is not None
        used.rollback()
    assert [attempts.count_try(request, "factor", ("3/d/key", "a place")) is None for _ in range(4)] == [False] * 3 + [
        True
    ]


def test_a_try_that_is_refused_counts_nowhere() -> None:
    """Tries that strangers' guesses had refused used up the owner's own place, which stayed shut after that."""
    request, everywhere, place = RequestFactory().post("/"), ("1/d/key", "everywhere"), ("3/d/key", "a place")
    assert attempts.count_try(request, "factor", everywhere) is not None
    assert [attempts.count_try(request, "factor", place, everywhere) for _ in range(4)] == [None] * 4
    assert attempts.count_try(request, "factor", place) is not None


def wrong(client: Client, name: str) -> str:
    return client.post("/accounts/login/", {"login": name, "password": "no"}).content.decode()


def test_another_web_process_knows_of_the_wrong_passwords(redis_url: str) -> None:
    user = person()
    for _ in range(5):
        wrong(Client(), user.username)
    assert "oo many" in wrong(Client(), user.username)
    assert [*redis.Redis.from_url(redis_url).scan_iter("holdpoint:*:allauth:rl:*")]


def test_a_value_that_somebody_pickled_is_not_run(redis_url: str) -> None:
    redis.Redis.from_url(redis_url).set(cache.make_key("counts"), pickle.dumps([1]))
    with pytest.raises(ValueError, match="utf"):
        cache.get("counts")


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
