"""One message, sent once: where it may go and never inside, for how long, and what is made of the answer."""

from __future__ import annotations

import datetime as dt
import socket
import threading
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

import pytest

from approvals.models.webhook import WebhookRefused
from approvals.notifications import due, log
from approvals.outbound import sending, targets
from approvals.outbound.targets import is_permitted
from tests.approvals.webhooks.made_webhooks import make_delivery, make_webhook, sent
from tests.approvals.webhooks.receiver import AUTHORITY, Answer, Receiver, cut, dripping, endless, junk, status
from tests.harness.services import free_port

NewReceiver = Callable[..., Receiver]
NOW = dt.datetime(2026, 11, 22, 7, 28, tzinfo=dt.UTC)
PUBLIC = ["93.184.215.14", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"]


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
    assert (got.path, got.id) == ("/holdpoint?from=test", delivery.name)
    assert got.headers["content-type"] == "application/json"
    assert got.headers["host"] == f"127.0.0.1:{receiver.port}"


ANSWERS: list[tuple[Answer, str, int | None]] = [
    (status(200), "delivered", 200),
    (status(204), "delivered", 204),
    (status(301, Location="https://hooks.example.com/"), "redirected", 301),
    (status(400), "http_400", 400),
    (status(410), "gone", 410),
    (status(503), "http_503", 503),
    (cut, "cut", None),
    (junk, "bad_answer", None),
]


def test_an_answer_is_judged_by_its_status(receiver: Receiver) -> None:
    for number, (answer, word, code) in enumerate(ANSWERS, 1):
        receiver.otherwise = answer
        found = sending.send(receiver.url, b"{}", {})
        assert (found.word, found.status) == (word, code)
        assert len(receiver.got) == number, "a redirect is not followed"
        assert word.startswith("http_") or log.WORDS[word]


def test_neither_a_redirect_inside_nor_a_proxy_of_the_environment_is_followed(
    receiver: Receiver, new_receiver: NewReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = new_receiver()
    receiver.otherwise = status(307, Location=inside.url)
    assert sending.send(receiver.url, b"{}", {}).word == "redirected"
    assert inside.got == []
    receiver.otherwise = status(204)
    proxy = new_receiver()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert sending.send(receiver.url, b"{}", {}).word == "delivered"
    assert proxy.got == []
    assert sending.send(f"http://127.0.0.1:{free_port()}/", b"{}", {}).word == "refused"


def test_a_name_that_leads_to_a_private_address_even_among_public_ones_is_not_sent_to(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver, settings: Any
) -> None:
    for answers in (["169.254.169.254"], ["::ffff:10.0.0.7"], ["93.184.215.14", "192.168.1.1"]):
        leads_to(monkeypatch, answers)
        assert sending.send("https://hooks.example.com/", b"{}", {}).word == "private_address"
    leads_to(monkeypatch, ["93.184.215.14"])
    assert sending.send("http://hooks.example.com/", b"{}", {}).word == "not_https"
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
    assert sending.send(receiver.url, b"{}", {}).word == "bad_address"
    assert receiver.got == []


def test_a_name_that_leads_elsewhere_at_the_second_look_gets_none(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """DNS rebinding: what was checked was another address than what was connected to."""
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = ["127.0.0.1/32"]
    looks = leads_to(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
    assert sending.send(receiver.url.replace("127.0.0.1", "rebind.example.com"), b"{}", {}).word == "delivered"
    assert looks == ["rebind.example.com"]
    assert receiver.got[0].headers["host"] == f"rebind.example.com:{receiver.port}"


def test_an_answer_that_comes_a_byte_at_a_time_ends_at_the_time_limit(receiver: Receiver, settings: Any) -> None:
    settings.HOLDPOINT_WEBHOOKS_TIMEOUT = 0.5
    receiver.otherwise = dripping
    assert sending.send(receiver.url, b"{}", {}).word == "timeout"


def test_of_an_endless_answer_little_is_read_and_its_status_counts(receiver: Receiver) -> None:
    receiver.poured = 0  # type: ignore[attr-defined]
    receiver.otherwise = endless
    assert sending.send(receiver.url, b"{}", {}).word == "delivered"
    receiver.stop()
    assert receiver.poured < 50_000_000  # type: ignore[attr-defined]


def test_a_name_that_nobody_looks_up_in_time_leads_nowhere(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.HOLDPOINT_WEBHOOKS_TIMEOUT = 0.2
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: over.wait(30) and [])
    assert sending.send("https://hooks.example.com/", b"{}", {}).word == "dns_failed"
    over.set()


def test_a_receiver_with_its_names_certificate(
    new_receiver: NewReceiver, monkeypatch: pytest.MonkeyPatch, settings: Any
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


INSIDE = [
    "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254",
    "100.64.0.1", "100.100.100.200", "192.0.0.192", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "168.63.129.16", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
    "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "2002:7f00:1::", "2001:0:7f00:1::", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fe80::1%eth0", "fec0::1", "ff02::1", "2001:db8::1", "0.0.0.1", "3fff::1", "192.88.99.1", "::ffff:0:7f00:1",
]  # fmt: skip


def test_what_is_public_or_named_in_the_settings_may_be_sent_to_and_nothing_inside() -> None:
    assert [address for address in PUBLIC if not is_permitted(ip_address(address))] == []
    assert [address for address in INSIDE if is_permitted(ip_address(address))] == []
    named = ["10.20.0.0/16", "fd00::/8"]
    for address in ("10.20.1.1", "fd12::1", "::ffff:10.20.1.1"):
        assert is_permitted(ip_address(address), named)
    for address in ("10.21.1.1", "fc00::1", "127.0.0.1"):
        assert not is_permitted(ip_address(address), named)


REFUSED = [
    "http://hooks.example.com/", "ftp://hooks.example.com/", "hooks.example.com", "//hooks.example.com/", "", "https://",
    "https://user@hooks.example.com/", "https://user:secret@hooks.example.com/", "https://hooks.example.com/#part",
    "https://hooks.example.com\\@inside/", "https://hooks.example.com/a b", "https://hooks.example.com/\r\nHost: x",
    "https://hooks.example.com:0/", "https://hooks.example.com:99999/", "https://hooks.example.com:x/",
    "https://hooks.exämple.com/", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:10.0.0.1]/", "https://[/",
    # Saved, and pending for ever: a resolver reads each as an address within.
    "https://127.1/", "https://0x7f.1/", "https://2130706433/", "https://017700000001/", "https://127.0.0.1./",
    "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://LocalHost/", "https://hooks.localhost./",
    "https://0/", "https://10.1/", "https://\uff11\uff12\uff17.0.0.1/", "https://127\u30020.0.1/",
    "https://169.254.169.254/latest/meta-data/", "https://-hooks.example.com/", "https://a..b/", "javascript:alert(1)",
    "https://hooks.example.com/" + "a" * 2000,
]  # fmt: skip


def test_an_address_that_may_not_be_is_refused_with_a_sentence_that_says_what_to_do(settings: Any) -> None:
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
    for url in REFUSED:
        assert len(targets.fault(url).split()) > 4, url
    with pytest.raises(WebhookRefused):
        make_webhook(REFUSED[0])


def test_any_other_is_taken_and_a_number_that_only_some_programs_take_for_an_address_is_sent_nothing(
    settings: Any,
) -> None:
    """Rows of before the form refused it are looked up as the resolver does, before anything leaves."""
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
    for url in ("https://hooks.example.com:8443/a/b?c=d&e", "https://1.1.1.1/", "https://xn--exmple-cua.com"):
        assert targets.fault(url) == ""
    for host in ("0x7f.1", "2130706433", "127.1", "017700000001"):
        assert sending.send(f"https://{host}/", b"{}", {}).word == "bad_address"


def test_pauses_grow_by_chance_and_as_a_receiver_asks_within_a_day_and_end() -> None:
    found = [due.pause(tries, [5, 60, 3600], spread=0) for tries in (1, 2, 3, 4)]
    assert found == [5, 60, 3600, None]
    assert [due.pause(2, [5, 60], spread=by) for by in (1, -1)] == [pytest.approx(72), pytest.approx(48)]
    asked = [due.pause(1, [60], spread=0, asked=seconds) for seconds in (0, 90, 1e9)]
    assert asked == [60, 90, 24 * 3600]
    assert due.pause(2, [60], spread=0, asked=10) is None
