"""HOLDPOINT_MFA_REQUIRED: whoever needs a second factor and signed in without comes no further than to add one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.utils import timezone

from agents.models.token import TokenScope
from approvals.accounts import required
from approvals.assignments import away
from approvals.live.access import access_of
from approvals.models import Gate
from approvals.policy import authority
from config.sign_in.providers import Provider
from tests.config.sign_in.test_factors import add_app, code_of, first_step, fresh_limits, second_step
from tests.config.sign_in.test_tries import codes_of
from tests.factories import make_gate, make_policy, make_team, make_user
from tests.factories.people import READER, REVIEWER
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import confirmed, form_of, signed_in

__all__ = ["fresh_limits"]
PASSWORD = "open sesame again"


def key_of(client: Any) -> str:
    return str(client.cookies["sessionid"].value)


@pytest.mark.parametrize(
    ("whom", "of"),
    [
        ("", []), ("staff", ["root", "staff"]), ("deciders", ["decider", "root", "staff"]),
        ("everybody", ["decider", "reader", "root", "staff"]),
    ],
)  # fmt: skip
def test_of_whom_it_is_required(settings: Any, whom: str, of: list[str]) -> None:
    settings.HOLDPOINT_MFA_REQUIRED = whom
    staff = make_user("Sam Staff")
    staff.is_staff = True
    people = {
        "reader": make_user("Reader", make_team(may=READER)), "decider": make_user("Decider", make_team(may=REVIEWER)),
        "staff": staff, "root": make_user("Root", superuser=True),
    }  # fmt: skip
    assert sorted(name for name, user in people.items() if required.of_whom(user)) == of


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
    add_app(client)
    assert client.get("/").status_code == 200
    assert access_of(key_of(client)) is not None
    assert client.post(f"/gates/{gate.pk}/decisions/", form_of(gate)).status_code == 303


def test_another_session_without_it_stays_shut(settings: Any) -> None:
    settings.HOLDPOINT_MFA_REQUIRED = "everybody"
    user = make_user("Ann Okafor", password=PASSWORD)
    secret = add_app(confirmed(user))
    other = signed_in(user)
    assert other.get("/")["Location"] == "/account/security/"
    client = first_step(user)
    second_step(client, code_of(secret, 1))
    assert client.get("/").status_code == 200


def test_whoever_removes_their_last_one_is_led_back(settings: Any) -> None:
    settings.HOLDPOINT_MFA_REQUIRED = "everybody"
    user = make_user("Ann Okafor", password=PASSWORD)
    client = confirmed(user)
    add_app(client)
    app = Authenticator.objects.get(user=user, type="totp")
    client.post(f"/account/security/factors/{app.pk}/removals/")
    assert client.get("/")["Location"] == "/account/security/"


def test_recovery_codes_that_went_with_the_last_factor_prove_nothing_any_more(settings: Any) -> None:
    """The codes went, and a session that was begun by one of them was let in all the same."""
    settings.HOLDPOINT_MFA_REQUIRED = "everybody"
    user = make_user("Ann Okafor", password=PASSWORD)
    add_app(confirmed(user))
    code = Authenticator.objects.get(user=user, type="recovery_codes").wrap().get_unused_codes()[0]
    client = first_step(user)
    second_step(client, code)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    assert client.get("/").status_code == 200
    app = Authenticator.objects.get(user=user, type="totp")
    client.post(f"/account/security/factors/{app.pk}/removals/")
    assert client.get("/")["Location"] == "/account/security/"


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


def test_a_providers_word_goes_with_its_link_though_another_is_linked(settings: Any) -> None:
    """Any other provider's sign-in in the session, of one that vouches for nothing, kept the word of the first."""
    provider = Provider(name="corp", label="Corp", issuer="https://corp.example", client_id="h", secret="s")
    settings.HOLDPOINT_OIDC = {"corp": replace(provider, vouches=True), "hub": replace(provider, name="hub")}
    settings.HOLDPOINT_MFA_REQUIRED = "everybody"
    user = make_user("Ann Okafor", password=PASSWORD)
    corp, hub = (SocialAccount.objects.create(user=user, provider=name, uid="ann, twice") for name in ("corp", "hub"))
    client = confirmed(user)
    session = client.session
    session["account_authentication_methods"] += [
        {"method": "socialaccount", "provider": link.provider, "at": 1.0} for link in (corp, hub)
    ]
    session[required.TRUSTED] = True
    session.save()
    assert client.get("/").status_code == 200
    assert client.post(f"/account/security/providers/{corp.pk}/removals/").status_code == 302
    assert client.get("/")["Location"] == "/account/security/"


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
