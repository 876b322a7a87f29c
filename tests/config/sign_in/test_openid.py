"""Single sign-on against a real provider in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.test import Client
from playwright.sync_api import expect

from config.environment import EnvironmentReader
from config.sign_in import openid, providers
from config.sign_in.openid import claims_of, verified_email
from config.sign_in.providers import Provider
from tests.config.sign_in.test_factors import PASSWORD, is_in, told
from tests.factories import make_team, make_user, unique
from tests.harness.browser_checks import check, watched
from tests.harness.examples import first_alone
from tests.harness.racing_threads import race
from tests.harness.services import Service, free_port, wait_for_http
from tests.harness.signed_in_clients import confirmed, signed_in

Corp = Callable[..., Provider]


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "tests.config.sign_in.provider", str(port)]
    service = Service("provider", command, tmp_path_factory.mktemp("provider"), {"AUTHLIB_INSECURE_TRANSPORT": "1"})
    base = f"http://127.0.0.1:{port}"
    try:
        wait_for_http(service, f"{base}/.well-known/openid-configuration")
        yield base
    finally:
        service.kill()


@pytest.fixture
def corp(issuer: str, settings: Any) -> Corp:
    """Return corp(**rules): have the settings name the provider, with these rules."""
    cache.clear()

    def named(**rules: Any) -> Provider:
        found = Provider("corp", "Corp", issuer, "holdpoint", "a secret of it", **rules)
        settings.HOLDPOINT_OIDC = {"corp": found}
        settings.SOCIALACCOUNT_PROVIDERS = providers.as_settings(settings.HOLDPOINT_OIDC)
        return found

    return named


def known_there(issuer: str, sub: str, **said: Any) -> None:
    httpx.put(f"{issuer}/users/{sub}", json=said).raise_for_status()


def leave(client: Client, query: str = "") -> str:
    page = client.post(f"/accounts/oidc/corp/login/{query}")
    to: str = page.context["to"]
    return to


def agree(to: str, sub: str) -> str:
    back = httpx.post(to, data={"sub": sub})
    assert back.status_code == 302, back.text
    return str(back.headers["Location"]).removeprefix("http://testserver")


def sign_in(sub: str, client: Client | None = None, query: str = "") -> tuple[Client, Any]:
    client = client or Client()
    return client, client.get(agree(leave(client, query), sub))


def owner_of(sub: str) -> User | None:
    found = SocialAccount.objects.filter(provider="corp", uid=sub).select_related("user").first()
    return found.user if found else None


def test_teams_come_and_go_with_the_claims(corp: Corp, issuer: str) -> None:
    finance, legal, other = make_team("Finance"), make_team("Legal"), make_team("Other")
    corp(creates=True, groups={"fin": finance.name, "law": legal.name, "gone": unique("No such team")})
    sub = unique("carla")
    known_there(issuer, sub, groups=["fin", "law", "elsewhere"], name=f"{sub} Reyes", preferred_username=sub)
    client, _ = sign_in(sub)
    assert is_in(client)
    user = owner_of(sub)
    assert user is not None
    assert set(user.groups.all()) == {finance, legal}
    assert (user.get_full_name(), user.has_usable_password(), user.is_staff) == (f"{sub} Reyes", False, False)
    assert told("user.signed_in", user)[-1]["method"] == "provider"

    for nothing in (None, 1, True, {"a": 1}):
        assert openid.read_claim(nothing) == set(), "only lists of texts say anything"
    user.groups.add(other)  # an administrator's doing
    known_there(issuer, sub, groups="law")
    sign_in(sub)
    assert set(user.groups.all()) == {legal, other}
    assert told("user.changed", user)[-1]["left"] == [finance.pk]

    known_there(issuer, sub)  # says nothing of groups any more
    sign_in(sub)
    assert set(user.groups.all()) == {other}
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert not is_in(sign_in(sub)[0]), "switched off here"


@pytest.mark.parametrize(
    ("whose", "verified"),
    [("a person's", "true"), ("a superuser's", True), ("two people's", True), ("switched off", True)],
)
def test_an_address_that_is_not_verified_or_not_of_one_plain_account_takes_over_none(
    corp: Corp, issuer: str, whose: str, verified: Any
) -> None:
    corp(links=True)
    victim = make_user("Vera Holm", superuser=whose == "a superuser's", password=PASSWORD)
    address = f"{victim.username}@corp.example"
    User.objects.filter(pk=victim.pk).update(email=address, is_active=whose != "switched off")
    if whose == "two people's":
        User.objects.filter(pk=make_user("Twin").pk).update(email=address)
    sub = unique("thief")
    known_there(issuer, sub, email=address, email_verified=verified)
    client, answer = sign_in(sub)
    assert (answer.status_code, owner_of(sub)) == (403, None)
    assert "no account here" in answer.content.decode()
    assert not is_in(client)


def test_a_verified_address_links_one_account_where_the_settings_say_so(corp: Corp, issuer: str) -> None:
    user = make_user("Vera Holm", password=PASSWORD)
    address = f"{user.username}@corp.example"
    User.objects.filter(pk=user.pk).update(email=address.upper())
    sub, second = unique("vera"), unique("vera")
    for each in (sub, second):
        known_there(issuer, each, email=address, email_verified=True)
    corp()
    assert sign_in(sub)[1].status_code == 403, "not by default"
    corp(links=True)
    client, _ = sign_in(sub)
    assert is_in(client)
    assert owner_of(sub) == user
    user.refresh_from_db()
    assert user.check_password(PASSWORD), "it stays as it was"
    assert told("user.linked", user)[-1]["provider"] == "corp"
    assert sign_in(second)[1].status_code == 403, "nobody who is linked to the provider already"
    assert owner_of(second) is None


def test_what_verifies_one_address_verifies_no_other() -> None:
    """The id token's mark counted for the address of the profile."""
    told = {"email": "mine@corp.example", "email_verified": True}
    for profile in ({"email": "yours@corp.example"}, {"email_verified": True}):
        said = {"id_token": told | {"email_verified": "email" in profile}, "userinfo": profile}
        assert verified_email(claims_of(SocialAccount(extra_data=said))) == ""
    assert verified_email(claims_of(SocialAccount(extra_data={"id_token": told, "userinfo": {}}))) == told["email"]


def test_a_new_account_takes_nobodys_name(corp: Corp, issuer: str) -> None:
    """Others decide by the names that they read; the profile refuses such a name, the provider's word did not."""
    make_user("Ann Okafor")
    corp(creates=True)
    sub = unique("thief")
    known_there(issuer, sub, name="Ann Okafor", given_name="Ann", family_name="Okafor", preferred_username=sub)
    sign_in(sub)
    owner = owner_of(sub)
    assert owner is not None
    assert owner.get_full_name() == ""


def test_an_account_is_linked_by_its_owner_who_confirmed_who_they_are(corp: Corp, issuer: str) -> None:
    corp()
    user = make_user("Vera Holm", password=PASSWORD)
    sub, connect = unique("vera"), "?process=connect&next=/account/security/"
    known_there(issuer, sub)
    asked = signed_in(user).post(f"/accounts/oidc/corp/login/{connect}")
    assert asked["Location"].startswith("/accounts/reauthenticate/")
    client = confirmed(user)
    there = leave(client, connect)
    session = client.session
    session["account_authentication_methods"] = []  # meanwhile it is long ago
    session.save()
    assert client.get(agree(there, sub)).status_code == 403
    assert owner_of(sub) is None
    sign_in(sub, confirmed(user), connect)
    assert sign_in(sub, confirmed(make_user("Eve", password=PASSWORD)), connect)[1].status_code == 409
    assert owner_of(sub) == user
    assert is_in(sign_in(sub)[0])
    client = confirmed(user)
    link = SocialAccount.objects.get(uid=sub)
    assert confirmed(make_user("Eve")).post(f"/account/security/providers/{link.pk}/removals/").status_code == 404
    client.post(f"/account/security/providers/{link.pk}/removals/")
    assert owner_of(sub) is None


def test_the_last_way_to_sign_in_is_kept(corp: Corp, issuer: str) -> None:
    corp(creates=True)
    sub = unique("vera")
    known_there(issuer, sub)
    client, _ = sign_in(sub)
    user, link = owner_of(sub), SocialAccount.objects.get(uid=sub)
    assert user is not None
    unlink = f"/account/security/providers/{link.pk}/removals/"
    kept = client.post(unlink, follow=True).content.decode()
    assert "nothing else would be left to sign in with" in kept
    assert owner_of(sub) == user
    key = Authenticator.objects.create(user=user, type="webauthn", data={"name": "Phone"})
    remove = f"/account/security/factors/{key.pk}/removals/"
    race([lambda: confirmed(user).post(unlink), lambda: confirmed(user).post(remove)])
    left = (owner_of(sub), Authenticator.objects.filter(pk=key.pk).exists())
    assert left in ((user, False), (None, True)), "one of the two is kept"
    assert [len(told(f"user.{kind}", user)) for kind in ("unlinked", "factor_removed")] == [
        int(left[0] is None), int(not left[1])
    ]  # fmt: skip


def test_staff_and_superusers_are_made_and_unmade_only_where_the_settings_map_them(corp: Corp, issuer: str) -> None:
    sub = unique("ada")
    known_there(issuer, sub, groups=["admins", "staff", "superusers"], is_staff=True, is_superuser=True)
    corp(creates=True)
    sign_in(sub)
    user = owner_of(sub)
    assert user is not None
    marks = User.objects.filter(pk=user.pk).values_list("is_staff", "is_superuser")
    assert marks.get() == (False, False)
    corp(staff=frozenset({"admins"}), superusers=frozenset({"admins"}))
    sign_in(sub)
    assert marks.get() == (True, True)
    known_there(issuer, sub, groups=["staff"])
    sign_in(sub)
    assert marks.get() == (False, False)


def test_state_nonce_and_challenge_go_along_and_are_compared(corp: Corp, issuer: str) -> None:
    corp(creates=True)
    sub = unique("carla")
    known_there(issuer, sub)
    client = Client()
    to = leave(client)
    asked = parse_qs(urlsplit(to).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert len(asked["nonce"][0]) >= 20
    assert len(asked["state"][0]) >= 16
    back = agree(to, sub)
    stranger = Client()
    assert stranger.get(back).status_code == 403, "a state that is not of this session"
    assert not is_in(stranger)
    assert client.get(back).status_code == 302
    assert is_in(client)
    assert Client().get(back).status_code == 403
    client.post("/accounts/logout/")
    assert client.get(back).status_code == 403, "used before"


@pytest.mark.parametrize(
    "wrong", first_alone([{"nonce": "another"}, {"aud": "another"}, {"iss": "https://evil.example"}, {"exp": 1}], 2)
)
def test_an_id_token_for_somebody_else_signs_nobody_in(corp: Corp, issuer: str, wrong: Mapping[str, Any]) -> None:
    corp(creates=True)
    sub = unique("carla")
    known_there(issuer, sub, **wrong)
    client, answer = sign_in(sub)
    assert answer.status_code == 403
    assert "could not be believed" in answer.content.decode()
    assert not is_in(client)
    assert owner_of(sub) is None


def test_a_row_in_the_database_makes_no_provider_nor_does_one_that_calls_itself_otherwise(
    corp: Corp, settings: Any, issuer: str
) -> None:
    found = corp()
    SocialApp.objects.create(
        provider="openid_connect", provider_id="evil", name="Evil", client_id="x", settings={"server_url": issuer}
    )
    assert Client().post("/accounts/oidc/evil/login/").status_code == 404
    assert Client().get("/accounts/oidc/corp/login/").status_code == 404, "a link signs nobody in"
    settings.HOLDPOINT_OIDC = {"corp": replace(found, issuer=issuer + "/other")}
    assert Client().post("/accounts/oidc/corp/login/").status_code == 403, "it calls itself otherwise"


def test_the_settings_refuse_what_cannot_work() -> None:
    env = EnvironmentReader({"HOLDPOINT_OIDC": "corp,Bad", "HOLDPOINT_OIDC_CORP_ISSUER": "http://corp.example"})
    providers.read_providers(env)
    said = " ".join(env.complaints)
    for part in ("'Bad'", "CORP_CLIENT_ID is not set", "CORP_CLIENT_SECRET is not set", "must start with https://"):
        assert part in said
    good = {
        "HOLDPOINT_OIDC": "corp", "HOLDPOINT_OIDC_CORP_ISSUER": "https://corp.example",
        "HOLDPOINT_OIDC_CORP_CLIENT_ID": "a", "HOLDPOINT_OIDC_CORP_CLIENT_SECRET": "b",
        "HOLDPOINT_OIDC_CORP_GROUPS": "fin=Finance, law=Legal team", "HOLDPOINT_OIDC_CORP_CREATES": "1",
    }  # fmt: skip
    env = EnvironmentReader(good)
    found = providers.read_providers(env)["corp"]
    assert env.complaints == []
    assert (found.groups, found.creates, found.label) == ({"fin": "Finance", "law": "Legal team"}, True, "Corp")


def test_in_a_browser_the_way_there_and_back_keeps_the_content_policy(
    browser: Any, issuer: str, start_web: Callable[..., Any]
) -> None:
    """A form that is redirected to another site breaks it: Chromium stays where it is."""
    team = make_team("Finance")
    values = {"ISSUER": issuer, "CLIENT_ID": "h", "CLIENT_SECRET": "s", "CREATES": "1", "GROUPS": f"fin={team.name}"}
    named = {f"HOLDPOINT_OIDC_CORP_{name}": value for name, value in values.items()}
    _, base = start_web({"HOLDPOINT_OIDC": "corp"} | named)
    sub = unique("carla")
    known_there(issuer, sub, groups=["fin"], given_name=sub, family_name="Reyes")
    page = browser.new_context().new_page()
    said = watched(page)
    page.goto(f"{base}/accounts/login/")
    assert check(page, "", said) == []
    page.get_by_role("button", name="Sign in with Corp").click()
    page.locator("input[name=sub]").fill(sub)
    page.get_by_role("button", name="Authorize").or_(page.locator("button[type=submit]")).first.click()
    expect(page.get_by_role("heading", name="Mine")).to_be_visible()
    assert Group.objects.get(pk=team.pk).user_set.filter(first_name=sub).exists()
