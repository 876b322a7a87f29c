"""A passkey's answer comes from anybody: what cannot be one is refused like a wrong one, and costs nothing."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from tests.factories import make_user
from tests.harness.signed_in_clients import confirmed

HUGE = 2**62  # bytes that no machine has


@pytest.fixture(autouse=True)
def fresh_limits() -> Any:
    """Begin with no tries counted."""
    cache.clear()
    yield
    cache.clear()


def coded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def answer(*, raw_id: Any = "AAAA", **parts: Any) -> str:
    """A passkey's answer of the right shape, but for what is given."""
    said = json.dumps({"type": "webauthn.get", "challenge": "AAAA", "origin": "http://localhost:8000"})
    response = {
        "clientDataJSON": coded(said.encode()), "authenticatorData": coded(bytes(37)), "signature": "AAAA",
        "userHandle": "MQ", **parts,
    }  # fmt: skip
    return json.dumps({"id": raw_id, "rawId": raw_id, "type": "public-key", "response": response})


EXTENDED = coded(bytes(32) + b"\x81" + bytes(4))  # says that extensions follow, and ends
JUNK = {
    "deep JSON": "[" * 100_000, "a number of many digits": "1" * 5_000, "no object": "[1]", "no answer": "{}",
    "an answer of another type": '{"response": 1}', "bytes by their number": answer(raw_id=HUGE),
    "a signature by its number": answer(signature=HUGE), "an owner by their number": answer(userHandle=HUGE),
    "extensions that are missing": answer(authenticatorData=EXTENDED),
    "deep extensions": answer(authenticatorData=coded(bytes(32) + b"\x81" + bytes(4) + b"\x81" * 50_000)),
    "deep client data": answer(clientDataJSON=coded(b"[" * 100_000)), "client data of another type": answer(
        clientDataJSON=coded(b'{"type": 1, "challenge": 5, "origin": []}')),
    "no base64": answer(signature="\ud800"), "an owner of many digits": answer(userHandle=coded(b"z" * 13)),
}  # fmt: skip


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_junk_in_place_of_a_passkey_signs_nobody_in_and_breaks_nothing(junk: str) -> None:
    """Anybody had the server make as many bytes as a number said, and answer 500."""
    client = Client()
    client.get("/accounts/passkey/", headers={"Accept": "application/json"})
    sent = client.post("/accounts/passkey/", {"credential": junk})
    assert sent["Location"] == "/accounts/login/?passkey=refused"


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_junk_adds_and_confirms_nothing(junk: str) -> None:
    client = confirmed(make_user("Ann Okafor", password="open sesame again"))
    for page in ("/account/security/passkeys/", "/accounts/reauthenticate/passkey/"):
        assert client.post(page, {"credential": junk, "name": "A"}).status_code == 200
