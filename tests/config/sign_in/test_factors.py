"""Second factors: who has one is asked for it, each code works once, and no copy of the database reads secrets."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.conf import settings
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from approvals.accounts import factors
from checkpoints.models import Event
from checkpoints.values import canonical_json
from tests.factories import make_user
from tests.factories.events import data_of
from tests.harness.signed_in_clients import confirmed, signed_in

PASSWORD = "open sesame again"


@pytest.fixture(autouse=True)
def fresh_limits() -> Any:
    """Begin with no tries counted."""
    cache.clear()
    yield
    cache.clear()


def person(name: str = "Ann Okafor") -> Any:
    return make_user(name, password=PASSWORD)


def add_app(client: Client) -> str:
    """Add an authenticator app by the page, and return its secret."""
    page = client.get("/account/security/app/")
    secret: str = page.context["form"].secret
    added = client.post("/account/security/app/", {"code": code_of(secret)})
    assert added["Location"] == "/account/security/recovery-codes/", added.content.decode()
    return secret


def code_of(secret: str, ahead: int = 0) -> str:
    """Return the app's code of now, or of a later half minute."""
    counter = int(time.time()) // 30 + ahead
    return str(totp.format_hotp_value(totp.hotp_value(secret, counter)))


def first_step(user: Any) -> Client:
    """Give the password, and come to the second step."""
    client = Client()
    sent = client.post("/accounts/login/", {"login": user.username, "password": PASSWORD})
    assert sent["Location"] == "/accounts/second-step/"
    return client


def second_step(client: Client, code: str) -> Any:
    return client.post("/accounts/second-step/", {"code": code})


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def told(kind: str, user: Any) -> list[dict[str, Any]]:
    return [data_of(each) for each in Event.objects.filter(kind=kind, subject=f"user:{user.pk}").order_by("pk")]


def test_whoever_has_an_app_is_asked_for_its_code() -> None:
    user = person()
    secret = add_app(confirmed(user))
    client = first_step(user)
    assert not is_in(client)
    second_step(client, code_of(secret, 1))
    assert is_in(client)
    assert [each["factor"] for each in told("user.factor_added", user)] == ["code"]
    assert told("user.signed_in", user)[-1]["method"] == "password+code"


def test_a_code_works_once_in_whatever_process() -> None:
    """allauth remembers used codes in the cache of one process."""
    user = person()
    secret = add_app(confirmed(user))
    code = code_of(secret, 1)
    second_step(first_step(user), code)
    cache.clear()  # as in another process
    client = first_step(user)
    assert "was used before" in second_step(client, code).content.decode()
    assert not is_in(client)
    assert told("user.factor_refused", user)[-1]["method"] == "code"


def test_the_code_that_added_the_app_signs_nobody_in() -> None:
    user = person()
    secret = add_app(confirmed(user))
    cache.clear()
    client = first_step(user)
    second_step(client, code_of(secret))
    assert not is_in(client)


def test_tries_are_few() -> None:
    user = person()
    secret = add_app(confirmed(user))
    client = first_step(user)
    for _ in range(5):
        second_step(client, "000000")
    answer = second_step(client, code_of(secret, 1))
    assert "Too many tries" in answer.content.decode()
    assert not is_in(client)


def test_a_recovery_code_signs_in_once_and_is_shown_once() -> None:
    user = person()
    owner = confirmed(user)
    add_app(owner)
    page = owner.get("/account/security/recovery-codes/").content.decode()
    codes = re.findall(r"<code>(\d{8})</code>", page)
    assert len(codes) == 10
    assert codes[0] not in owner.get("/account/security/recovery-codes/").content.decode()
    client = first_step(user)
    second_step(client, codes[0])
    assert is_in(client)
    again = first_step(user)
    second_step(again, codes[0])
    assert not is_in(again)
    assert "9 codes left" in owner.get("/account/security/").content.decode()


def test_a_recovery_code_confirms_how_one_signs_in_and_is_not_used_up_for_anything_else() -> None:
    """It was taken for a new token too, used up, and the token's page asked again."""
    user = person()
    owner = confirmed(user)
    add_app(owner)
    page = owner.get("/account/security/recovery-codes/").content.decode()
    [code, *_others] = re.findall(r"<code>(\d{8})</code>", page)
    confirms = reverse("mfa_reauthenticate")
    offered = owner.get("/accounts/reauthenticate/", {"next": "/tokens/"}).content.decode()
    assert ("Code from your app" in offered, "recovery code" in offered) == (True, False)
    assert "This code is wrong" in owner.post(confirms, {"code": code, "next": "/tokens/"}).content.decode()
    assert "10 codes left" in owner.get("/account/security/").content.decode()
    there = {"next": "/account/security/"}
    assert "or a recovery code" in owner.get("/accounts/reauthenticate/", there).content.decode()
    assert owner.post(confirms, {"code": code, **there}).status_code == 302
    assert "9 codes left" in owner.get("/account/security/").content.decode()


def test_secrets_are_not_readable_in_the_rows() -> None:
    user = person()
    secret = add_app(confirmed(user))
    rows = Authenticator.objects.filter(user=user)
    assert {row.type for row in rows} == {"totp", "recovery_codes"}
    assert not any(secret in str(row.data) for row in rows)


def test_a_secret_that_no_key_opens_lets_nobody_in_and_takes_no_other_factor_with_it() -> None:
    user = person()
    secret = add_app(confirmed(user))
    app, codes = (Authenticator.objects.get(user=user, type=name) for name in ("totp", "recovery_codes"))
    [code, *_] = codes.wrap().get_unused_codes()
    Authenticator.objects.filter(pk=app.pk).update(data={**app.data, "secret": "of another key"})
    client = first_step(user)
    second_step(client, code_of(secret, 1))
    assert not is_in(client)
    owner = confirmed(user)
    assert "cannot be read" in owner.get("/account/security/").content.decode()
    second_step(client, code)
    assert is_in(client)
    Authenticator.objects.filter(pk=codes.pk).update(data={**codes.data, "seed": "of another key"})
    client = first_step(user)
    assert "cannot be read" in client.get("/accounts/second-step/").content.decode()
    assert factors.has_any(user), "the password alone is not enough either"
    assert owner.post(f"/account/security/factors/{app.pk}/removals/").status_code == 302
    assert not factors.has_any(user)


def test_a_row_without_a_seal_counts_and_what_is_saved_has_one_for_older_processes() -> None:
    """Seals stopped nobody whom they named: who may write these rows may write the password beside them."""
    user = person()
    secret = add_app(confirmed(user))
    app = Authenticator.objects.get(user=user, type="totp")
    before = app.data.pop("seal")
    Authenticator.objects.filter(pk=app.pk).update(data=app.data)
    client = first_step(user)
    second_step(client, code_of(secret, 1))
    assert is_in(client)
    app.refresh_from_db()
    data = {name: value for name, value in app.data.items() if name != "seal"}
    content = canonical_json.encode_canonical({"user": user.pk, "type": "totp", "data": data})
    key = hmac.new(settings.SECRET_KEY.encode(), b"holdpoint second factors: seal", hashlib.sha256).digest()
    assert app.data["seal"] == hmac.new(key, content, hashlib.sha256).hexdigest() != before


def test_another_secret_key_still_opens_what_the_old_one_encrypted(settings: Any) -> None:
    user = person()
    secret = add_app(confirmed(user))
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another key of many characters 0123"
    client = first_step(user)
    second_step(client, code_of(secret, 1))
    assert is_in(client)
    call_command("reencrypt_factors", stdout=StringIO())
    settings.SECRET_KEY_FALLBACKS = []
    assert all(each.sound for each in factors.list_factors(user))
    codes = Authenticator.objects.get(user=user, type="recovery_codes").wrap().get_unused_codes()
    again = first_step(user)
    second_step(again, codes[0])
    assert is_in(again)


def test_a_factor_is_added_or_removed_only_after_a_confirmation() -> None:
    user = person()
    assert signed_in(user).get("/account/security/app/")["Location"].startswith("/accounts/reauthenticate/")
    owner = confirmed(user)
    add_app(owner)
    row = Authenticator.objects.get(user=user, type="totp")
    address = f"/account/security/factors/{row.pk}/removals/"
    assert signed_in(user).post(address)["Location"].startswith("/accounts/reauthenticate/")
    assert confirmed(person("Bob Lindqvist")).post(address).status_code == 404
    assert factors.has_any(user)
    other = signed_in(user)
    assert owner.post(address).status_code == 302
    assert not Authenticator.objects.filter(user=user).exists(), "recovery codes alone are of no use"
    assert not is_in(other)
    assert {each["factor"] for each in told("user.factor_removed", user)} == {"code", "recovery_code"}
