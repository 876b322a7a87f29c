"""A real push service (RFC 8030), and the browsers that subscribe at it: these decrypt, the service cannot."""

from __future__ import annotations

import json
import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import http_ece
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from tests.approvals.webhooks.receiver import Got, Handler, Receiver, status

DAY = 24 * 3600


def text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def raw(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


class PushService(Receiver):
    """Takes messages for the browsers that subscribed, where their sender may send to them."""

    def __init__(self) -> None:
        super().__init__()
        self.browsers: dict[str, FakeBrowser] = {}
        self.refusals: list[str] = []
        self.otherwise = self.take

    def subscribe(self, sender: str) -> FakeBrowser:
        """Subscribe a new browser, for messages of whoever has this public key."""
        path = f"/push/{os.urandom(8).hex()}"
        browser = FakeBrowser(f"http://127.0.0.1:{self.port}{path}", sender)
        self.browsers[path] = browser
        return browser

    def take(self, handler: Handler) -> None:
        """Answer as RFC 8030 and RFC 8292 have it."""
        got = self.got[-1]
        browser = self.browsers.get(got.path)
        if browser is None:
            return status(410)(handler)
        try:
            checked(got.headers["authorization"], sender=browser.sender, audience=f"http://127.0.0.1:{self.port}")
            assert got.headers["content-encoding"] == "aes128gcm", "the content coding"
            assert int(got.headers["ttl"]) >= 0, "no time to live"
            assert len(got.body) <= 4096, "too long"
        except (AssertionError, InvalidSignature, KeyError) as why:
            self.refusals.append(str(why))
            return status(403)(handler)
        browser.got.append(got)
        return status(201, Location=f"{browser.endpoint}/m/1")(handler)


class FakeBrowser:
    """A browser's end of a subscription: its keys, and what arrives."""

    def __init__(self, endpoint: str, sender: str) -> None:
        self.endpoint, self.sender = endpoint, sender
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.secret = os.urandom(16)
        self.got: list[Got] = []

    @property
    def said(self) -> dict[str, str]:
        """What it tells the site."""
        point = self.key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        return {"endpoint": self.endpoint, "p256dh": text(point), "auth": text(self.secret)}

    @property
    def value(self) -> str:
        said = self.said
        return json.dumps({"endpoint": said.pop("endpoint"), "keys": said, "by": self.sender})

    def read(self) -> list[Any]:
        return [
            json.loads(http_ece.decrypt(got.body, private_key=self.key, auth_secret=self.secret, version="aes128gcm"))
            for got in self.got
        ]


def checked(header: str, *, sender: str, audience: str) -> None:
    """Check a VAPID header (RFC 8292): who signed it, for whom, and for how long."""
    scheme, _, rest = header.partition(" ")
    parts = dict(part.split("=", 1) for part in rest.split(","))
    assert scheme == "vapid", "the scheme"
    assert parts["k"] == sender, "another sender than the browser subscribed to"
    signed, _, signature = parts["t"].rpartition(".")
    both = raw(signature)
    numbers = int.from_bytes(both[:32]), int.from_bytes(both[32:])
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw(parts["k"]))
    key.verify(encode_dss_signature(*numbers), signed.encode(), ec.ECDSA(hashes.SHA256()))
    head, claims = (json.loads(raw(part)) for part in signed.split("."))
    assert head["alg"] == "ES256", "the algorithm"
    assert claims["aud"] == audience, f"made for {claims['aud']}"
    assert time.time() < claims["exp"] <= time.time() + DAY, "the time"
    assert claims["sub"].startswith("mailto:"), "whom to write to"
