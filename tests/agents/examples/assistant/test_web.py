"""Fetching for the assistant: the host that was approved, no redirect followed, nothing inside."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import Mock

import brotli  # type: ignore[import-untyped]
import httpx
import pytest

from agents.examples.assistant.tools import fetch_address
from tests.factories.driven_runs import advance_to_rest, decide, effects, open_gate

from .assistant_runs import DONE, begun, calling
from .endpoint import Endpoint

PLAIN = {"Content-Type": "text/plain"}
ANSWERS = {  # by path: status, headers, body
    "/x?y=1": (200, {"Content-Type": "text/plain; charset=utf-8"}, "gr\u00fcezi".encode()),
    "/latin": (200, {"Content-Type": "text/plain; charset=ISO-8859-1"}, "gr\u00fcezi".encode("latin-1")),
    "/odd": (200, {"Content-Type": "text/plain; charset=unicode_escape"}, b"\\ud800 \xff"),
    "/moved": (302, {"Location": "/secret"}, b""),
    "/picture": (200, {"Content-Type": "image/png"}, b"\x89PNG"),
    "/long": (200, PLAIN, b"x" * 3_000_000),
    "/bomb": (200, PLAIN | {"Content-Encoding": "br"}, brotli.compress(bytes(64 * 1024 * 1024), quality=5)),
    "/two": (200, PLAIN | {"Content-Encoding": "Identity, gzip"}, b"x"),
    "/plain": (200, PLAIN | {"Content-Encoding": "Identity"}, b"as it is"),
}


class Site(BaseHTTPRequestHandler):
    """Answers by its path, and counts."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(f"{self.headers['Host']}{self.path}")
        status, headers, body = ANSWERS[self.path]
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
    settings.HOLDPOINT_ASSISTANT_NETWORKS = ["127.0.0.0/8", "::1/128"]


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize(("path", "words"), [
    ("/x?y=1", "HTTP 200 OK, text/plain\n\ngr\u00fcezi"),
    ("/latin", "gr\u00fcezi"),
    ("/odd", "\\ud800 \ufffd"),  # Python's codec of that name makes text that no state holds: it failed the run's step
    ("/picture", "no text, so nothing of it is told."),
    ("/long", "only its first 16,000 characters are told."),
    ("/moved", "Nothing was followed; ask for that address if you want it."),
    ("/two", "which was not asked for: nothing of it is told."),
    ("/bomb", "which was not asked for: nothing of it is told."),
    ("/plain", "as it is"),
])  # fmt: skip
def test_what_came_back_is_told_as_text_in_bounds(path: str, words: str, site: str) -> None:
    told = fetch_address(f"{site}{path}")
    assert told.endswith(words)
    assert len(told) < 17_000
    assert Site.asked == [f"{site.removeprefix('http://')}{path}"]
    assert (f"it is at {site}/secret now" in told) == (path == "/moved")


@pytest.mark.usefixtures("inside")
def test_no_body_is_unpacked(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than a kilobyte of brotli became a gigabyte: it was counted when it was unpacked."""
    unpack = Mock(side_effect=httpx.Response.iter_bytes, autospec=True)
    monkeypatch.setattr(httpx.Response, "iter_bytes", unpack)
    fetch_address(f"{site}/long")
    assert not unpack.called


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://a.example/", "http://", "nonsense", "http://u:p@a.example/"]
)
def test_what_is_no_address_is_not_fetched_and_asked_of_nobody(url: str, endpoint: Endpoint) -> None:
    assert fetch_address(url).startswith("Nothing was fetched")
    assert begun(endpoint, calling(("http_get", {"url": url})), DONE).status == "completed"
    assert endpoint.told()[0].startswith("The address")


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
    assert "gr\u00fcezi" in fetch_address(f"http://rebound.example:{port}/x?y=1")
    assert asked.count("rebound.example") == 1


@pytest.mark.usefixtures("inside")
def test_a_host_that_a_setting_names_is_asked_without_a_gate(site: str, endpoint: Endpoint, settings: Any) -> None:
    settings.HOLDPOINT_ASSISTANT_HOSTS = ["localhost"]
    run = begun(endpoint, calling(("http_get", {"url": f"{site}/x?y=1"})), DONE)
    assert run.status == "completed"
    assert effects(run) == []
    assert "gr\u00fcezi" in endpoint.told()[0]
    other = begun(endpoint, calling(("http_get", {"url": f"{site.replace('localhost', '127.0.0.1')}/x?y=1"})), DONE)
    assert open_gate(other).asked.actions[0].tool == "http_get"
