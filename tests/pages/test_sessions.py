"""A session's cookie is a stranger's to write."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.conftest import session_of
from tests.factories import ann, make_team


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
