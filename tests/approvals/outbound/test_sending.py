"""One message, sent once: what leaves, to whom, for how long, and what is made of the answer."""

from __future__ import annotations

import datetime as dt
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from approvals.outbound import sending, signing
from tests.approvals.webhooks.made_webhooks import make_delivery, sent
from tests.approvals.webhooks.receiver import AUTHORITY, Answer, Receiver, cut, dripping, endless, junk, status
from tests.harness.services import free_port

NewReceiver = Callable[..., Receiver]
NOW = dt.datetime(2026, 11, 22, 7, 28, tzinfo=dt.UTC)


def leads_to(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Names resolve to these addresses, a list for each look; returns the names that were looked up."""
    looks: list[str] = []
    real = socket.getaddrinfo

    def look(host: str, port: int, *args: Any, **kwargs: Any) -> list[Any]:
        if host[0].isdigit():  # an address is no name
            return real(host, port, *args, **kwargs)
        looks.append(host)
        found = answers[min(len(looks), len(answers)) - 1]
        return [(0, 0, 0, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", look)
    return looks


def test_a_receiver_verifies_what_it_gets_by_the_standards_own_library(receiver: Receiver) -> None:
    delivery, secret = make_delivery(receiver.url)
    assert sent(delivery) == "delivered"
    [got] = receiver.got
    assert got.verified(secret)["type"] == "webhook.test"
    assert got.body == bytes(delivery.body)
    assert (got.path, got.id) == ("/holdpoint?from=test", delivery.message)
    assert got.headers["content-type"] == "application/json"
    assert got.headers["host"] == f"127.0.0.1:{receiver.port}"


def test_a_message_with_another_body_another_id_or_an_old_time_is_refused_by_the_receiver(receiver: Receiver) -> None:
    delivery, secret = make_delivery(receiver.url)
    sent(delivery)
    [got] = receiver.got
    earlier = str(int(got.headers["webhook-timestamp"]) - 1)
    for change in ({"webhook-id": "msg_other"}, {"webhook-timestamp": earlier}):
        with pytest.raises(WebhookVerificationError):
            type(got)(got.path, {**got.headers, **change}, got.body).verified(secret)
    with pytest.raises(WebhookVerificationError):
        type(got)(got.path, got.headers, got.body.replace(b"webhook.test", b"gate.closed")).verified(secret)
    old = signing.headers(delivery.message, got.body, at=NOW - dt.timedelta(days=900), by=[secret])
    with pytest.raises(WebhookVerificationError, match="too old"):
        type(got)(got.path, old, got.body).verified(secret)


ANSWERS: list[tuple[Answer, str, int | None]] = [
    (status(200), "delivered", 200),
    (status(202), "delivered", 202),
    (status(204), "delivered", 204),
    (status(301, Location="https://hooks.example.com/"), "redirected", 301),
    (status(304), "redirected", 304),
    (status(400), "http_400", 400),
    (status(404), "http_404", 404),
    (status(410), "gone", 410),
    (status(500), "http_500", 500),
    (status(503), "http_503", 503),
    (cut, "cut", None),
    (junk, "bad_answer", None),
]


@pytest.mark.parametrize(("answer", "word", "code"), ANSWERS, ids=[each[1] + str(each[2]) for each in ANSWERS])
def test_an_answer_is_judged_by_its_status(receiver: Receiver, answer: Answer, word: str, code: int | None) -> None:
    receiver.otherwise = answer
    found = sending.send(receiver.url, b"{}", {})
    assert (found.word, found.status) == (word, code)
    assert len(receiver.got) == 1
    assert word.startswith("http_") or sending.WORDS[word]


def test_nobody_there_is_refused() -> None:
    assert sending.send(f"http://127.0.0.1:{free_port()}/", b"{}", {}).word == "refused"


def test_a_redirect_to_a_private_address_is_not_followed(receiver: Receiver, new_receiver: NewReceiver) -> None:
    inside = new_receiver()
    receiver.otherwise = status(307, Location=inside.url)
    assert sending.send(receiver.url, b"{}", {}).word == "redirected"
    assert inside.got == []


def test_no_proxy_of_the_environment_is_asked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, new_receiver: NewReceiver
) -> None:
    proxy = new_receiver()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert sending.send(receiver.url, b"{}", {}).word == "delivered"
    assert proxy.got == []


class TestAddresses:
    """Where a name leads is looked at once, and gone to."""

    @pytest.mark.parametrize(
        "private", ["10.0.0.7", "169.254.169.254", "::1", "fd00:ec2::254", "::ffff:10.0.0.7", "0.0.0.1"]
    )
    def test_a_name_that_leads_to_a_private_address_is_not_sent_to(
        self, private: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        leads_to(monkeypatch, [private])
        assert sending.send("https://hooks.example.com/", b"{}", {}).word == "private_address"

    def test_one_private_address_among_public_ones_is_enough_to_refuse(self, monkeypatch: pytest.MonkeyPatch) -> None:
        leads_to(monkeypatch, ["93.184.215.14", "192.168.1.1"])
        assert sending.send("https://hooks.example.com/", b"{}", {}).word == "private_address"

    def test_a_name_that_leads_elsewhere_at_the_second_look_gets_none(
        self, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        """DNS rebinding: what was checked was another address than what was connected to."""
        settings.HOLDPOINT_WEBHOOKS_PRIVATE = ["127.0.0.1/32"]
        looks = leads_to(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
        assert sending.send(receiver.url.replace("127.0.0.1", "rebind.example.com"), b"{}", {}).word == "delivered"
        assert looks == ["rebind.example.com"]
        assert receiver.got[0].headers["host"] == f"rebind.example.com:{receiver.port}"

    def test_a_name_that_leads_nowhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(*args: Any, **kwargs: Any) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", fails)
        assert sending.send("https://hooks.example.com/", b"{}", {}).word == "dns_failed"

    def test_http_goes_to_named_networks_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        leads_to(monkeypatch, ["93.184.215.14"])
        assert sending.send("http://hooks.example.com/", b"{}", {}).word == "not_https"

    def test_what_the_settings_no_longer_allow_is_not_sent(self, receiver: Receiver, settings: Any) -> None:
        settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
        assert sending.send(receiver.url, b"{}", {}).word == "bad_address"
        assert receiver.got == []


class TestBounds:
    """However a receiver behaves, a worker is free again soon."""

    def test_an_answer_that_comes_a_byte_at_a_time_ends_at_the_time_limit(
        self, receiver: Receiver, settings: Any
    ) -> None:
        settings.HOLDPOINT_WEBHOOKS_TIMEOUT = 0.5
        receiver.otherwise = dripping
        assert sending.send(receiver.url, b"{}", {}).word == "timeout"

    def test_of_an_endless_answer_little_is_read_and_its_status_counts(self, receiver: Receiver) -> None:
        receiver.poured = 0  # type: ignore[attr-defined]
        receiver.otherwise = endless
        assert sending.send(receiver.url, b"{}", {}).word == "delivered"
        receiver.stop()
        assert receiver.poured < 50_000_000  # type: ignore[attr-defined]

    def test_a_name_that_nobody_looks_up_in_time_leads_nowhere(
        self, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        settings.HOLDPOINT_WEBHOOKS_TIMEOUT = 0.2
        over = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: over.wait(30) and [])
        assert sending.send("https://hooks.example.com/", b"{}", {}).word == "dns_failed"
        over.set()


class TestEncrypted:
    """https, with a certificate for the name and nobody else's."""

    def test_a_receiver_with_its_names_certificate(
        self, new_receiver: NewReceiver, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        secure = new_receiver(secure=True)
        leads_to(monkeypatch, ["127.0.0.1"])
        address = f"https://hooks.example.test:{secure.port}/"
        sending._trusted.cache_clear()
        assert sending.send(address, b"{}", {}).word == "tls_failed"
        settings.HOLDPOINT_WEBHOOKS_CA = str(AUTHORITY)
        sending._trusted.cache_clear()
        assert sending.send(address, b"{}", {}).word == "delivered"
        assert sending.send(address.replace("hooks.", "other."), b"{}", {}).word == "tls_failed"
        sending._trusted.cache_clear()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (b"120", 120.0), (b"0", 0.0),
        (b"Sun, 22 Nov 2026 07:30:00 GMT", 120.0), (b"Sun, 22 Nov 2026 07:00:00 GMT", 0.0),
        (b"soon", None), (b"-5", None), (b"", None), (b"1e3", None), ("²".encode("latin-1"), None),
    ],
)  # fmt: skip
def test_a_receiver_may_ask_for_a_pause(text: bytes, seconds: float | None) -> None:
    found = sending.judged(503, [(b"Retry-After", text)], now=NOW.timestamp())
    assert (found.word, found.retry_after) == ("http_503", seconds)
