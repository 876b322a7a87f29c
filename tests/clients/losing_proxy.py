"""A proxy on the way to the server that loses answers, refuses, and writes down what it was sent."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import httpx

from tests.harness.waiting import PATIENCE

PASSED = ("authorization", "content-type", "idempotency-key", "accept")


class Sent(NamedTuple):
    method: str
    path: str
    key: str
    body: bytes


# What becomes of a request: "" lets it pass, "lose" loses its answer, a path passes it to another address of the
# server, a status with seconds, and where it has one its code, refuses it.
Refusal = tuple[int, str] | tuple[int, str, str]
Fate = Callable[[Sent], str | Refusal]
Start = Callable[..., "Proxy"]


class Proxy:
    """Listens until it is closed; `fate` is asked about each request."""

    def __init__(self, server: str, fate: Fate, port: int = 0) -> None:
        self.seen: list[Sent] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.pass_on()

            def do_POST(self) -> None:
                self.pass_on()

            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                sent = Sent(self.command, self.path, self.headers.get("Idempotency-Key", ""), body)
                outer.seen.append(sent)
                fate = fate_of(sent)
                if isinstance(fate, tuple):
                    problem = {"detail": "Later."} | ({"code": fate[2]} if len(fate) == 3 else {})
                    kind = {"Content-Type": "application/problem+json"} if "code" in problem else {}
                    self.answer(fate[0], json.dumps(problem).encode(), {"Retry-After": fate[1], **kind})
                    return
                headers = {name: self.headers[name] for name in PASSED if name in self.headers}
                path = fate if fate.startswith("/") else self.path
                told = httpx.request(self.command, server + path, headers=headers, content=body, timeout=PATIENCE)
                if fate == "lose":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.answer(told.status_code, told.content, {"Content-Type": told.headers["content-type"]})

            def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                return

        fate_of = fate
        self.listening = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.listening.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.listening.server_port}"
        threading.Thread(target=self.listening.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.listening.shutdown()
        self.listening.server_close()

    def posts(self, what: str) -> list[Sent]:
        return [each for each in self.seen if each.method == "POST" and each.path.endswith(what)]


def losing_first(*whats: str) -> Fate:
    """The first POST to addresses that end with each of these loses its answer; all else passes."""
    left = set(whats)

    def fate(sent: Sent) -> str:
        what = next((each for each in left if sent.method == "POST" and sent.path.endswith(each)), "")
        left.discard(what)
        return "lose" if what else ""

    return fate
