"""Fetching for the assistant: the host that was approved, no redirect followed, nothing inside."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any
from unittest.mock import Mock

import brotli  # type: ignore[import-untyped]
import httpx
import pytest

from agents.examples.assistant import tools
from approvals.outbound import addresses
from tests.factories.driven_runs import advance_to_rest, decide, effects, open_gate

from .assistant_runs import DONE, begun, calling
from .endpoint import Endpoint

BOMB = brotli.compress(bytes(64 * 1024 * 1024), quality=5)
LOOPBACK = ["127.0.0.0/8", "::1/128"]


class Site(BaseHTTPRequestHandler):
    """Answers by its path, and counts."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(f"{self.headers['Host']}{self.path}")
        status, headers, body = {
            "/moved": (302, {"Location": "/secret"}, b""),
            "/picture": (200, {"Content-Type": "image/png"}, b"\x89PNG"),
            "/long": (200, {"Content-Type": "text/plain"}, b"x" * 3_000_000),
            "/bomb": (200, {"Content-Type": "text/plain", "Content-Encoding": "br"}, BOMB),
            "/two": (200, {"Content-Type": "text/plain", "Content-Encoding": "Identity, gzip"}, b"x"),
            "/plain": (200, {"Content-Type": "text/plain", "Content-Encoding": "Identity"}, b"as it is"),
            "/odd": (200, {"Content-Type": "text/plain; charset=no-such"}, b"odd"),
        }.get(self.path, (200, {"Content-Type": "text/plain; charset=utf-8"}, "gr\u00fcezi".encode()))
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    Site.asked.clear()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://localhost:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def inside(settings: Any) -> None:
    settings.HOLDPOINT_ASSISTANT_NETWORKS = LOOPBACK


@pytest.mark.usefixtures("inside")
def test_a_page_is_told_as_text(site: str) -> None:
    assert tools.fetch_address(f"{site}/x?y=1") == "HTTP 200 OK, text/plain\n\ngr\u00fcezi"
    assert Site.asked == [f"{site.removeprefix('http://')}/x?y=1"]


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("path", ["bomb", "two"])
def test_a_packed_body_is_not_unpacked(site: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than a kilobyte of brotli became a gigabyte: it was counted when it was unpacked."""
    said = tools.fetch_address(f"{site}/{path}")
    assert "which was not asked for: nothing of it is told." in said
    assert len(said) < 200
    assert tools.fetch_address(f"{site}/plain").endswith("as it is")
    unpack = Mock(side_effect=httpx.Response.iter_bytes, autospec=True)
    monkeypatch.setattr(httpx.Response, "iter_bytes", unpack)
    tools.fetch_address(f"{site}/long")
    assert not unpack.called


@pytest.mark.usefixtures("inside")
def test_a_redirect_is_told_and_not_followed(site: str) -> None:
    told = tools.fetch_address(f"{site}/moved")
    assert f"{site}/secret" in told
    assert len(Site.asked) == 1


@pytest.mark.usefixtures("inside")
def test_a_body_is_bounded_and_must_be_text(site: str) -> None:
    assert len(tools.fetch_address(f"{site}/long")) < 17_000
    assert "no text" in tools.fetch_address(f"{site}/picture")
    assert tools.fetch_address(f"{site}/odd").endswith("odd")


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://a.example/", "http://", "nonsense", "http://u:p@a.example/"]
)
def test_what_is_no_address_is_not_fetched(url: str) -> None:
    assert tools.fetch_address(url).startswith("Nothing was fetched")


def test_an_address_inside_is_refused_unless_a_setting_allows_it(site: str, endpoint: Endpoint) -> None:
    run = begun(endpoint, calling(("http_get", {"url": f"{site}/secret"})), DONE)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert "not a public address" in endpoint.told()[0]
    assert Site.asked == []


@pytest.mark.usefixtures("inside")
def test_a_name_is_looked_up_once_and_that_is_connected_to(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that says another address the second time (DNS rebinding) is not asked a second time."""
    port = int(site.rpartition(":")[2])
    asked: list[Any] = []

    def says(host: str, *args: Any, **more: Any) -> Any:
        asked.append(host)
        return [(2, 1, 6, "", ("127.0.0.1" if host in ("rebound.example", "127.0.0.1") else "192.0.2.1", port))]

    monkeypatch.setattr("socket.getaddrinfo", says)
    assert "gr\u00fcezi" in tools.fetch_address(f"http://rebound.example:{port}/")
    assert [host for host in asked if host == "rebound.example"] == ["rebound.example"]


@pytest.mark.parametrize("address", [
    "127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.1", "224.0.0.1",
    "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
    "64:ff9b::7f00:1", "2002:7f00:1::", "2001::1", "::7f00:1", "::ffff:0:7f00:1",
])  # fmt: skip
def test_no_address_inside_is_permitted_however_it_is_written(address: str) -> None:
    assert not targets.is_permitted(ip_address(address))


def test_public_ones_and_those_of_a_named_network_are() -> None:
    assert targets.is_permitted(ip_address("93.184.216.34"))
    assert targets.is_permitted(ip_address("2606:2800:220:1:248:1893:25c8:1946"))
    assert targets.is_permitted(ip_address("10.1.2.3"), ["10.0.0.0/8"])
    assert targets.is_permitted(ip_address("::ffff:10.1.2.3"), ["10.0.0.0/8"])
    assert not targets.is_permitted(ip_address("10.1.2.3"), ["10.0.0.0/16"])


@pytest.mark.usefixtures("inside")
def test_a_host_that_a_setting_names_is_asked_without_a_gate(site: str, endpoint: Endpoint, settings: Any) -> None:
    settings.HOLDPOINT_ASSISTANT_HOSTS = ["localhost"]
    run = begun(endpoint, calling(("http_get", {"url": f"{site}/x"})), DONE)
    assert run.status == "completed"
    assert effects(run) == []
    assert "gr\u00fcezi" in endpoint.told()[0]
    other = begun(endpoint, calling(("http_get", {"url": f"{site.replace('localhost', '127.0.0.1')}/x"})), DONE)
    assert open_gate(other).asked.actions[0].tool == "http_get"
