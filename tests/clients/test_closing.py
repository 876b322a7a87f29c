"""A client that is closed leaves no connection behind, also where a heartbeat was just being sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from holdpoint.drivers import Threads
from holdpoint.sending import Keep, Op, Request, Send

from tests.harness.waiting import PATIENCE


class Held(ThreadingHTTPServer):
    """Holds each request until it is told to answer."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.asked, self.answer = threading.Event(), threading.Event()


class Answering(BaseHTTPRequestHandler):
    server: Held

    def do_GET(self) -> None:
        self.server.asked.set()
        self.server.answer.wait(PATIENCE)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Connections(httpx.HTTPTransport):
    """The real connections; writes down what happened to them."""

    def __init__(self) -> None:
        super().__init__()
        self.happened: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        self.happened.append("answered")
        return answer

    def close(self) -> None:
        self.happened.append("closed")
        super().close()


@pytest.fixture
def server() -> Iterator[Held]:
    """A server that holds requests."""
    with Held() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def sent_beside() -> Op[None]:
    """Send one request in the background."""
    yield Keep(Send(Request("GET", "")) for _ in range(1))


def test_a_request_of_the_background_ends_before_the_connections_are_closed(server: Held) -> None:
    # httpx forgets a connection that is made while it closes the others: nobody closed it, and it stayed open.
    connections = Connections()
    driver = Threads(f"http://127.0.0.1:{server.server_port}", "token", transport=connections)
    driver.run(sent_beside())
    assert server.asked.wait(PATIENCE)
    [(thread, stop)] = driver.beside.items()

    def stop_and_answer() -> None:
        stop()
        server.answer.set()

    driver.beside[thread] = stop_and_answer
    driver.close()
    assert connections.happened == ["answered", "closed"]
    assert not driver.beside


def test_a_thread_that_is_not_started_yet_is_not_waited_for(server: Held) -> None:
    driver = Threads(f"http://127.0.0.1:{server.server_port}", "token")
    stopped = threading.Event()
    driver.beside[threading.Thread(target=stopped.wait)] = stopped.set
    driver.close()
    assert stopped.is_set()
    assert driver.client.is_closed
