"""The sandbox's HTTP server: the standard library's, because a fault must be able to cut a connection."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from agents.examples import orders as refunds_orders

from . import page
from .bank import Bank, Body, RequestRefused, SandboxAnswer
from .faults import Fault, Faults
from .ledger import LedgerFile
from .trade import Trade

MAX_BODY = 64_000  # bytes
MAX_KEY = 200  # characters


class Sandbox(ThreadingHTTPServer):
    """The server, its bank and its faults."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], data: Path) -> None:
        self.ledger = LedgerFile(data / "ledger.jsonl")
        self.bank = Bank(self.ledger, charge_of_order)
        self.traded = LedgerFile(data / "trade.jsonl")
        self.trade = Trade(self.traded)
        self.faults = Faults()
        self.stopping = threading.Event()
        super().__init__(address, Handler)

    @property
    def url(self) -> str:
        return f"http://{self.server_name}:{self.server_port}"

    def server_bind(self) -> None:
        super().server_bind()
        self.server_name = str(self.server_address[0])  # not what a name server makes of it

    def server_close(self) -> None:
        self.stopping.set()
        super().server_close()
        self.ledger.close()
        self.traded.close()


def charge_of_order(charge: str) -> Body | None:
    """Return what was paid for one of the shop's orders. Raises OrdersRefused."""
    order = refunds_orders.find(charge.removeprefix("ch_"))
    if order is None or order.charge != charge:
        return None
    return {"id": charge, "amount": f"{order.left:.2f}", "currency": order.currency, "card": order.card}


def ledger_of(sandbox: Sandbox, name: str, body: Body) -> SandboxAnswer:
    """Return all that ever happened, and the refunds as they stand."""
    return SandboxAnswer(200, {"entries": sandbox.bank.entries(), "refunds": sandbox.bank.refunds()})


# Method, path ("*" is one part), where a fault is asked for that meets it ("": none does), and what is done with that
# part, or with the idempotency key of a POST without one, and with the body.
ROUTES: tuple[tuple[str, str, str, Callable[[Sandbox, str, Body], SandboxAnswer]], ...] = (
    ("GET", "/", "", ledger_of),
    ("GET", "/ledger", "", ledger_of),
    ("POST", "/charges", "charges", lambda sandbox, key, body: sandbox.bank.charge(key, body)),
    ("GET", "/charges/*", "charges", lambda sandbox, charge, _: sandbox.bank.read_charge(charge)),
    ("POST", "/refunds", "refunds", lambda sandbox, key, body: sandbox.bank.refund(key, body)),
    ("POST", "/refunds/*/cancel", "cancel", lambda sandbox, refund, _: sandbox.bank.cancel(refund)),
    ("GET", "/refunds/*", "reads", lambda sandbox, refund, _: sandbox.bank.read(refund)),
    ("GET", "/refunds/by-key/*", "reads", lambda sandbox, key, _: sandbox.bank.read_by_key(key)),
    ("GET", "/orders", "reads", lambda sandbox, *_: sandbox.trade.made("orders")),
    ("POST", "/orders", "orders", lambda sandbox, key, body: sandbox.trade.make("orders", key, body)),
    ("POST", "/orders/*/withdraw", "withdraw", lambda sandbox, order, _: sandbox.trade.withdraw("orders", order)),
    ("GET", "/prices", "reads", lambda sandbox, *_: sandbox.trade.made("prices")),
    ("POST", "/prices", "prices", lambda sandbox, key, body: sandbox.trade.make("prices", key, body)),
    ("POST", "/prices/*/withdraw", "withdraw", lambda sandbox, price, _: sandbox.trade.withdraw("prices", price)),
    ("GET", "/releases", "reads", lambda sandbox, *_: sandbox.trade.made("releases")),
    ("POST", "/releases", "releases", lambda sandbox, key, body: sandbox.trade.make("releases", key, body)),
    ("POST", "/releases/*/withdraw", "withdraw", lambda sandbox, id, _: sandbox.trade.withdraw("releases", id)),
    ("GET", "/faults", "", lambda sandbox, *_: SandboxAnswer(200, {"faults": sandbox.faults.waiting()})),
    ("POST", "/faults", "", lambda sandbox, _, body: SandboxAnswer(200, {"faults": sandbox.faults.add(body)})),
    ("DELETE", "/faults", "", lambda sandbox, *_: SandboxAnswer(200, {"faults": sandbox.faults.clear()})),
)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = 60.0
    server: Sandbox

    def route(self) -> None:
        """Find what is asked for; every refusal is JSON with a sentence."""
        body = self.read_body()
        if body is None:
            return
        path = [unquote(part) for part in self.path.split("?")[0].split("/")]
        known = False
        for method, pattern, on, work in ROUTES:
            parts = pattern.split("/")
            if len(parts) == len(path) and all(p in ("*", given) for p, given in zip(parts, path, strict=True)):
                known = True
                if method == self.command:
                    name = path[parts.index("*")] if "*" in parts else ""
                    keyed = method == "POST" and on and "*" not in parts
                    if not keyed or (name := self.key()):
                        self.perform(on, partial(work, self.server, name, body), name, str(body.get("amount")))
                    return
        self.refuse(405 if known else 404, "not for that method" if known else "there is nothing here")

    do_GET = do_POST = do_DELETE = route

    def perform(self, on: str, work: Callable[[], SandboxAnswer], *values: str) -> None:
        """Do the work and answer, unless a fault wants it otherwise."""
        fault = self.server.faults.take(on, *values)
        if fault and not self.survives(fault):
            return
        try:
            answer = work()
        except RequestRefused as refused:
            self.refuse(refused.status, str(refused))
            return
        if fault and fault.kind == "cut_after":
            self.cut()
        elif fault and fault.kind == "500_after":
            self.refuse(500, "a fault that was asked for, after the work was done")
        elif "entries" in answer.body and "text/html" in self.headers.get("Accept", ""):
            self.answer(200, page.of(**answer.body).encode(), "text/html; charset=utf-8")
        else:
            self.answer_json(answer.status, answer.body, replayed=answer.replayed)

    def survives(self, fault: Fault) -> bool:
        """Tell whether the work is done in spite of this fault."""
        if fault.kind in ("timeout", "slow"):
            self.server.stopping.wait(fault.seconds)
        if fault.kind in ("timeout", "cut_before"):
            self.cut()
        elif fault.kind == "500":
            self.refuse(500, "a fault that was asked for, before anything was done")
        return fault.kind in ("slow", "cut_after", "500_after")

    def cut(self) -> None:
        """End the connection without an answer, by a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def finish(self) -> None:
        if self.connection.fileno() >= 0:  # not cut
            super().finish()

    def key(self) -> str:
        """Return the request's idempotency key; empty after the refusal of a request without one."""
        key = self.headers.get("Idempotency-Key", "")
        if not 1 <= len(key) <= MAX_KEY or not key.isprintable():
            self.refuse(400, f"an Idempotency-Key of 1 to {MAX_KEY} characters is needed")
            return ""
        return key

    def read_body(self) -> Body | None:
        """Return the request's JSON object; an empty one where there is no body; None after a refusal."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY or self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            self.refuse(413, f"a body has a length of at most {MAX_BODY} bytes, and says so")
            return None
        data = self.rfile.read(int(length))
        if not data:
            return {}
        # No browser sends this type across sites without asking first.
        if self.headers.get_content_type() != "application/json":
            self.refuse(415, "the body must be application/json")
            return None
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            self.refuse(400, "the body must be a JSON object")
            return None
        return body

    def refuse(self, status: int, reason: str) -> None:
        self.answer_json(status, {"error": reason})

    def answer_json(self, status: int, body: Any, *, replayed: bool = False) -> None:
        extra = {"Idempotent-Replayed": "true"} if replayed else {}
        self.answer(status, json.dumps(body, ensure_ascii=False).encode(), "application/json", extra)

    def answer(self, status: int, body: bytes, kind: str, extra: dict[str, str] | None = None) -> None:
        self.send_response(HTTPStatus(status))
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store", **page.HEADERS}
        for name, value in (headers | (extra or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Silence: the ledger is the log."""
