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
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from config.web import wire
from tests.conftest import SharedWeb
from tests.factories import make_user, unique
from tests.harness.examples import first_alone
from tests.harness.services import Service, free_port, wait_for_http, web_command
from tests.harness.signed_in_clients import confirmed, session_of, signed_in
from tests.harness.waiting import PATIENCE

ODD_ORIGINS = ["http://[", "http://[::1", "http://a:b", "http://a:99999999", "//", "http://\xff", "null", "a" * 9000]


def addresses(patterns: list[URLPattern | URLResolver], prefix: str = "") -> list[str]:
    """Every address, with its parameters still in it."""
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
    for number, path in enumerate(everywhere()):
        query = f"{quote(path.replace(chr(0), 'x'))}?q=%00&a%00=1&next=/%00"
        for address in (quote(path), query):
            # Each is asked for in one way, and where a text is in its path in both.
            for ask in (client.get, client.post) if "\0" in path else (client.get, client.post)[number % 2 :][:1]:
                status = ask(address).status_code
                assert status < 500 or (address, status) == ("/readyz", 503), address
                assert status in (400, 404, 422) or "%00" not in address, address


@pytest.mark.parametrize("address", ["/?q=a%00", "/api/runs?status=%00", "/api/agents/a%00b"])
def test_it_is_refused_in_words(address: str) -> None:
    answer = Client().get(address)
    assert answer.status_code == {"/?q=a%00": 400, "/api/runs?status=%00": 422}.get(address, 404)
    if address.startswith("/api/"):
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert json.loads(answer.content)["status"] == answer.status_code
    else:
        assert b"Nothing was changed." in answer.content


@pytest.mark.parametrize("origin", first_alone(ODD_ORIGINS, 2))
def test_an_origin_that_is_none_is_refused(web: str, origin: str) -> None:
    person = User.objects.create_user(unique("origin"), password="a long enough phrase")
    cookies = {"sessionid": session_of(person), "csrftoken": "a" * 32}
    form = {"csrfmiddlewaretoken": "a" * 32}
    sent = {b"Origin": origin.encode("latin-1")}
    assert httpx.post(f"{web}/accounts/logout/", data=form, cookies=cookies, headers=sent).status_code in (
        400,
        403,
        431,
    )
    for address in ("/", "/api/runs", "/accounts/login/"):
        assert httpx.get(f"{web}{address}", cookies=cookies, headers=sent).status_code in (200, 302, 400, 431)


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


@pytest.mark.parametrize(
    ("proxies", "believed"),
    [pytest.param("", False, marks=pytest.mark.long), (None, False), ("127.0.0.1", True)],
    ids=["none", "unset", "named"],
)
def test_who_a_request_is_from_is_believed_of_a_proxy_that_is_named(
    start_service: Callable[..., Service], proxies: str | None, believed: bool
) -> None:
    """Whoever spoke from this machine said which address they were, and wrong tokens were counted for that one;
    uvicorn believes 127.0.0.1 where the variable is not set at all.
    """
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    command = [*(["env", "-u", "FORWARDED_ALLOW_IPS"] if proxies is None else []), *web_command(port)]
    given = {"HOLDPOINT_ORIGINS": base, "HOLDPOINT_API_FAILURES": "2", "FORWARDED_ALLOW_IPS": proxies or ""}
    wait_for_http(start_service("web", command, given), f"{base}/healthz")
    sent = {"Authorization": "Bearer hp_no"}
    asked = [httpx.get(f"{base}/api/runs", headers=sent | {"X-Forwarded-For": f"203.0.113.{n}"}) for n in range(6)]
    assert (429 not in [each.status_code for each in asked]) is believed


START = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
ENDLESS = 4 * 1024 * 1024  # bytes: far more than is taken, and few enough to be sent in a moment
ENDLESS_HEADS = {
    "one header": START + b"X-Long: ",
    "the address": b"GET /healthz?",
    "the name of a header": START + b"X-",
    "a trailer": b"POST /nowhere/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"1\r\nx\r\n0\r\nX-Long: ",
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
    """Everything that is answered until the server closes."""
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


@pytest.mark.parametrize("start", ENDLESS_HEADS.values(), ids=ENDLESS_HEADS)
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


@pytest.mark.parametrize(
    "half",
    [
        b"",
        START,
        b"POST /api/gates HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + START,
    ],
    ids=["nothing", "half a head", "half a body in chunks", "half of the second"],
)
def test_half_a_request_is_closed(shared_web: SharedWeb, half: bytes) -> None:
    """It stayed open for as long as its sender liked."""
    base = shared_web({"HOLDPOINT_REQUEST_TIMEOUT": "0.5"})
    with socket.create_connection(("127.0.0.1", int(base.rpartition(":")[2])), timeout=PATIENCE) as connection:
        connection.sendall(half)
        said = answered(connection)
    assert b"HTTP/1.1 408 " in said or not half
    assert b"within" in said or not half


def test_what_keeps_coming_gets_more_time() -> None:
    """A large file over a slow line is no attack."""
    assert wire.patience(0, least=30.0) == 30.0
    assert wire.patience(100 * 1024 * 1024, least=30.0) > 600
