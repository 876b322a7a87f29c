"""What comes slowly or without an end: it is refused early, in words, and holds nobody else up."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import httpx
import pytest

from config.web import wire
from tests.conftest import SharedWeb
from tests.harness.waiting import PATIENCE

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


def test_headers_without_number_are_refused(dial: Callable[[], socket.socket]) -> None:
    connection = dial()
    connection.sendall(START + b"X: y\r\n" * (wire.MOST_HEADERS + 1) + b"\r\n")
    said = answered(connection)
    assert said.startswith(b"HTTP/1.1 431 ")
    assert b"at most 100 headers" in said


def test_a_head_that_is_too_long_is_told_the_bound(dial: Callable[[], socket.socket]) -> None:
    connection = dial()
    connection.sendall(START + b"X-Long: " + b"a" * wire.HEAD + b"\r\n\r\n")
    said = answered(connection)
    assert said.startswith(b"HTTP/1.1 431 ")
    assert b"at most 65,536 bytes" in said


def test_a_head_within_the_bounds_is_taken(dial: Callable[[], socket.socket]) -> None:
    connection = dial()
    many = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 600) for number in range(wire.MOST_HEADERS - 2))
    connection.sendall(START + many + b"Connection: close\r\n\r\n")
    assert answered(connection).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "half",
    [
        b"",
        START,
        b"POST /accounts/login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf",
        b"POST /api/gates HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + START,
    ],
    ids=["nothing", "half a head", "half a body", "half a body in chunks", "half of the second"],
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
