"""A session's cookie is a stranger's to write."""

from __future__ import annotations

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from approvals.sessions import SessionStore, digest_of_key
from tests.factories import ann, make_team
from tests.harness.signed_in_clients import session_of, signed_in


@pytest.mark.parametrize("cookie", ["\0aaaaaaaaaa", "a\0" * 16, "é" * 32, "A" * 32, "a" * 41, "short", "a" * 31 + "'"])
def test_a_cookie_that_cannot_be_a_key_is_nobodys(cookie: str) -> None:
    """One with a NUL was an error of the server's, and a traceback in its log for whoever liked to write one."""
    client = Client()
    client.cookies["sessionid"] = cookie
    response = client.get("/accounts/login/")
    assert response.status_code == 200
    client.cookies["sessionid"] = cookie
    assert client.get("/").status_code == 302


def test_a_real_one_is() -> None:
    client = Client()
    client.cookies["sessionid"] = session_of(ann(make_team()))
    assert client.get("/").status_code == 200


def test_what_the_database_holds_signs_nobody_in() -> None:
    """The table held the very keys that cookies hold: whoever read it was anybody who was signed in."""
    person = ann(make_team())
    key, client = session_of(person), Client()
    rows = list(Session.objects.values_list("session_key", flat=True))
    assert key not in rows
    assert digest_of_key(key) in rows
    for each in (digest_of_key(key), digest_of_key(key).lower()):
        client.cookies["sessionid"] = each
        assert client.get("/").status_code == 302


def test_signing_out_and_a_new_password_end_the_session_that_is_stored() -> None:
    client = signed_in(ann(make_team()))
    key = client.cookies["sessionid"].value
    client.post("/accounts/logout/")
    assert not Session.objects.filter(session_key=digest_of_key(key)).exists()
    session = SessionStore()
    session["a"] = 1
    session.save()
    before = session.session_key
    session.cycle_key()
    assert not SessionStore().exists(str(before))
    assert SessionStore(session.session_key)["a"] == 1
    session.flush()
    assert session.session_key is None


async def test_the_store_hashes_keys_where_it_is_asked_from_a_loop_too() -> None:
    session = SessionStore()
    await session.aset("a", 1)
    await session.asave()
    key = str(session.session_key)
    assert await Session.objects.filter(session_key=digest_of_key(key)).aexists()
    assert not await Session.objects.filter(session_key=key).aexists()
    assert await SessionStore(key).aget("a") == 1
    assert await session.aexists(key)
    await session.adelete()
    assert not await session.aexists(key)
