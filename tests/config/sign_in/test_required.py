"""HOLDPOINT_MFA_REQUIRED: whoever needs a second factor and signed in without comes no further than to add one."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.models import Authenticator

from approvals.accounts import required
from approvals.live.access import access_of
from approvals.models import Gate
from tests.config.sign_in.test_factors import add_app, code_of, first_step, fresh_limits, second_step
from tests.factories import make_gate, make_team, make_user
from tests.factories.people import READER, REVIEWER
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
    other = signed_in(user)
    secret = add_app(confirmed(user))
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
