"""Sessions: the person is read anew by each request, and whoever may not be signed in any more is not."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import ann, make_gate, make_team
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in


def reads(client: Client) -> bool:
    return client.get("/inbox/list/").status_code == 200


@pytest.mark.parametrize("change", ["deactivated", "password", "removed", "backend"])
def test_a_session_ends_with_what_it_stands_on(settings: Any, change: str) -> None:
    person = ann(make_team())
    client = signed_in(person)
    assert reads(client)
    if change == "deactivated":
        User.objects.filter(pk=person.pk).update(is_active=False)
    elif change == "password":
        person.set_password("another one, and long enough")
        person.save()
    elif change == "removed":
        person.delete()
    else:
        settings.AUTHENTICATION_BACKENDS = settings.AUTHENTICATION_BACKENDS[1:]
    assert not reads(client)


def test_a_session_of_a_retired_secret_goes_on_under_the_new_one(settings: Any) -> None:
    client = signed_in(ann(make_team()))
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another secret, and longer than the fifty characters asked for"
    assert reads(client)
    settings.SECRET_KEY_FALLBACKS = []
    assert reads(client)


def test_a_forged_cookie_and_a_session_without_a_person_sign_nobody_in() -> None:
    client = Client()
    client.cookies["sessionid"] = "abcdefgh12345678"
    assert not reads(client)
    client = signed_in(ann(make_team()))
    session = client.session
    del session[BACKEND_SESSION_KEY]
    session.save()
    assert not reads(client)


def test_what_a_person_may_see_is_read_by_each_request_and_the_person_once() -> None:
    team = make_team()
    gate, person = make_gate(team=team), ann(team)
    client = signed_in(person)
    with sent() as statements:
        assert client.get(f"/gates/{gate.pk}/status/").status_code == 200
    assert sum(each.startswith('SELECT "auth_user"."id"') for each in statements) == 1, statements
    person.groups.clear()
    assert client.get(f"/gates/{gate.pk}/status/").status_code == 404
