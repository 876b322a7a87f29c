"""Requests that no browser sends, and what comes slowly or without an end, are refused early and in words."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from urllib.parse import quote

import httpx
import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from config.web import wire
from tests.config.web.test_serving import NARROW
from tests.conftest import SharedWeb
from tests.factories import make_user
from tests.harness.examples import first_alone
from tests.harness.services import Service
from tests.harness.signed_in_clients import confirmed, session_of, signed_in
from tests.harness.waiting import PATIENCE


def addresses(patterns: list[URLPattern | URLResolver], prefix: str = "") -> list[str]:
    found: list[str] = []
    for each in patterns:
        path = prefix + str(each.pattern)
        found += addresses(each.url_patterns, path) if isinstance(each, URLResolver) else [path]
    return found


def everywhere() -> list[str]:
    """Every address with 1, and with a NUL in the place of each text."""
    found = []
    for path in addresses(get_resolver().url_patterns):
        plain = re.sub(r"\(\?P<\w+>[^)]*\)|[\^$\\]|\.\*", "", path)
        found.append("/" + re.sub(r"<int:\w+>", "1", re.sub(r"<(?:str:|path:|slug:)?\w+>", "\0", plain)))
    return found


def test_a_nul_in_a_path_or_a_query_is_refused_everywhere() -> None:
    """PostgreSQL takes none in a text: whatever looked for one in it answered 500."""
    client = confirmed(make_user("Root", superuser=True, password="the phrase of the root"))
    client.raise_request_exception = False
    paths = everywhere()
    queries = [f"{quote(path.replace(chr(0), 'x'))}?q=%00&a%00=1&next=/%00" for path in paths[::7]]
    for address in [*(quote(path) for path in paths if "\0" in path), *queries]:
        for ask in (client.get, client.post):
            assert ask(address).status_code in (400, 404, 422), address
    refused = client.get("/?q=a%00")
    assert (refused.status_code, b"Nothing was changed." in refused.content) == (400, True)
    for address, code in (("/api/runs?status=%00", 422), ("/api/agents/a%00b", 404)):
        refused = client.get(address)
        assert (refused.status_code, refused.headers["Content-Type"]) == (code, "application/problem+json")
        assert json.loads(refused.content)["status"] == code


def test_an_origin_that_is_none_is_refused(web: str) -> None:
    cookies = {"sessionid": session_of(make_user("Pat")), "csrftoken": "a" * 32}
    with httpx.Client(base_url=web, cookies=cookies) as client:
        for origin in ("http://[", "http://a:99999999", "//", "http://\xff", "null", "a" * 9000):
            sent = {b"Origin": origin.encode("latin-1")}
            posted = client.post("/accounts/logout/", data={"csrfmiddlewaretoken": "a" * 32}, headers=sent)
            assert posted.status_code in (400, 403, 431), origin
            assert client.get("/api/runs", headers=sent).status_code in (200, 400, 431), origin


@pytest.mark.parametrize(
    ("next", "leads"),
    [
        ("/audit/", "/audit/"),
        ("http://localhost:8000/audit/", "http://localhost:8000/audit/"),
        ("http://localhost:9999/audit/", "/"),
        ("//localhost:9999/", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
    ],
)
def test_whoever_signed_in_is_led_on_within_this_origin(next: str, leads: str) -> None:
    """Another port of the same host was one too, where somebody else may listen."""
    person = make_user("Pat", password="a long enough phrase")
    form = {"login": person.username, "password": "a long enough phrase", "next": next}
    answer = Client(HTTP_HOST="localhost:8000").post("/accounts/login/", form)
    assert (answer.status_code, answer.headers["Location"]) == (302, leads)
    again = signed_in(person).post(f"/accounts/logout/?next={quote(next)}", HTTP_HOST="localhost:8000")
    assert again.headers["Location"] == (leads if leads != "/" else "/accounts/login/")


def test_who_a_request_is_from_is_believed_of_no_proxy_that_is_not_named(
    start_web: Callable[..., tuple[Service, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever spoke from this machine said which address they were, and wrong tokens were counted for that one;
    uvicorn believes 127.0.0.1 where the variable is not set at all.
    """
    monkeypatch.delenv("FORWARDED_ALLOW_IPS")
    _, base = start_web({"HOLDPOINT_API_FAILURES": "2"})
    sent = {"Authorization": "Bearer hp_no"}
    asked = [httpx.get(f"{base}/api/runs", headers=sent | {"X-Forwarded-For": f"203.0.113.{n}"}) for n in range(6)]
    assert 429 in [each.status_code for each in asked]


START = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
ENDLESS = 4 * 1024 * 1024  # bytes: far more than is taken, and few enough to be sent in a moment
ENDLESS_HEADS = {
    "one header": START + b"X-Long: ",
    "a trailer": b"POST /nowhere/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"1\r\nx\r\n0\r\nX-Long: ",
    "the address": b"GET /healthz?",
}


@pytest.fixture
def dial(web: str) -> Iterator[Callable[[], socket.socket]]:
    """Return dial() -> a connection to the web server, on which one says what one likes."""
    made: list[socket.socket] = []

    def new() -> socket.socket:
        port = int(web.rpartition(":")[2])
        made.append(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
        return made[-1]

    yield new
    for each in made:
        each.close()


def answered(connection: socket.socket) -> bytes:
    said = b""
    try:
        while part := connection.recv(65536):
            said += part
    except ConnectionResetError:
        pass  # closed over what was sent and not read any more
    return said


def poured(connection: socket.socket, what: bytes, number: int) -> None:
    """Send `what` so often, or until the server closes."""
    with suppress(OSError):
        for _ in range(number):
            connection.sendall(what)


@pytest.mark.parametrize("start", first_alone(ENDLESS_HEADS.values(), 2), ids=ENDLESS_HEADS)
def test_a_head_without_an_end_is_refused(dial: Callable[[], socket.socket], web: str, start: bytes) -> None:
    """Three of them left the whole server unanswering for half a minute: each piece was added to a growing text."""
    connections = []
    for _ in range(3):
        connections.append(dial())  # just before it sends: a busy machine took longer than a request may
        connections[-1].sendall(start)
        poured(connections[-1], b"a" * 65536, ENDLESS // 65536)  # the system may take it before the server looks
    said = [answered(each) for each in connections]
    assert not any(b" 408 " in each for each in said), "refused for its size, and not once its time was over"
    assert httpx.get(f"{web}/healthz", timeout=PATIENCE).status_code == 200


def test_a_head_beyond_the_bounds_is_told_them_and_one_within_is_taken(dial: Callable[[], socket.socket]) -> None:
    for head, words in (
        (b"X: y\r\n" * (wire.MOST_HEADERS + 1), b"at most 100 headers"),
        (b"X-Long: " + b"a" * wire.HEAD + b"\r\n", b"at most 65,536 bytes"),
    ):
        connection = dial()
        connection.sendall(START + head + b"\r\n")
        said = answered(connection)
        assert said.startswith(b"HTTP/1.1 431 ")
        assert words in said
    connection = dial()
    many = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 600) for number in range(wire.MOST_HEADERS - 2))
    connection.sendall(START + many + b"Connection: close\r\n\r\n")
    assert answered(connection).startswith(b"HTTP/1.1 200 ")


HALVES = (
    START,
    b"POST /api/gates HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + START,
    b"",
)


def test_half_a_request_is_closed(shared_web: SharedWeb) -> None:
    """It stayed open for as long as its sender liked."""
    port = int(shared_web(NARROW).rpartition(":")[2])
    connections = [socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) for _ in HALVES]
    for connection, half in zip(connections, HALVES, strict=True):
        connection.sendall(half)
    *said, nothing = (answered(each) for each in connections)
    assert all(b"HTTP/1.1 408 " in each and b"within" in each for each in said)
    assert b"HTTP/1.1 200 " not in nothing
    for connection in connections:
        connection.close()


def test_what_keeps_coming_gets_more_time() -> None:
    """A large file over a slow line is no attack."""
    assert wire.patience(0, least=30.0) == 30.0
    assert wire.patience(100 * 1024 * 1024, least=30.0) > 600
