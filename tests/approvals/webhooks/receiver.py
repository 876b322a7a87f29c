"""A real receiver of webhooks: keeps what it gets, verifies it as Standard Webhooks has it, answers as it is told."""

from __future__ import annotations

import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from standardwebhooks.webhooks import Webhook as Verifier

HERE = Path(__file__).parent
CERTIFICATE = HERE / "receiver.pem"  # of hooks.example.test, with its key; for tests alone
AUTHORITY = HERE / "authority.pem"
Answer = Callable[["Handler"], None]


@dataclass(frozen=True)
class Got:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def verified(self, secret: str) -> Any:
        """The message, where the signature is good. Raises WebhookVerificationError."""
        return Verifier(secret).verify(self.body, self.headers)


class Handler(BaseHTTPRequestHandler):
    """Answers a POST by the next answer that was told, else 204."""

    server: Receiver
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.got.append(Got(self.path, headers, body))
        answer = self.server.answers.popleft() if self.server.answers else self.server.otherwise
        with suppress(OSError):
            answer(self)
        self.close_connection = True

    def log_message(self, *args: Any) -> None:
        """Nothing: a test says itself what went wrong."""


class Receiver(ThreadingHTTPServer):
    """Listens on a loopback port; `secure` speaks TLS as hooks.example.test."""

    daemon_threads = True

    def __init__(self, *, secure: bool = False, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.got: list[Got] = []
        self.answers: deque[Answer] = deque()
        self.otherwise: Answer = status(204)
        if secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is none of the receiver's faults."""

    @property
    def port(self) -> int:
        return self.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/holdpoint?from=test"

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self.thread.join()


def status(code: int, **headers: str) -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def cut(handler: Handler) -> None:
    """Hang up in place of an answer."""


def junk(handler: Handler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")


def dripping(handler: Handler) -> None:
    """A header that never ends, a byte at a time: no single wait is long."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        handler.wfile.write(b"a")
        handler.wfile.flush()
        time.sleep(0.02)


def endless(handler: Handler) -> None:
    """Taken, with an answer that never ends."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        handler.wfile.write(b"x" * 65536)
        handler.server.poured += 65536  # type: ignore[attr-defined]
