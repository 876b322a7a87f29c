"""A payment provider to practise on: a real HTTP server with a ledger on disk, and faults when asked for them.

- `POST /charges` {amount, currency, card} and `POST /refunds` {charge, amount, currency, reason?, reference?} want an
  `Idempotency-Key`. The same key with the same body gives the same answer, with another one 409. Amounts are text with
  two decimals; other currencies are exchanged at fixed rates. A refusal (4xx) did nothing and is not remembered.
- `GET /charges/<id>` returns the amount paid, the amount `refunded` of it, and its `refunds`, each with the `reference`
  that its request gave. Each order of the shop's file has a charge `ch_<order>`.
- `POST /refunds/<id>/cancel` takes a refund back. `GET /refunds/<id>` and `GET /refunds/by-key/<key>` read one.
- `POST /orders`, `/prices` and `/releases` take any object; `POST /orders/<id>/withdraw` takes it back.
- `GET /ledger` lists every entry: JSON, or a page of the refunds for a person's browser.
- `POST /faults` {on: charges|refunds|cancel|reads, kind, times?, match?, seconds?} makes the next `times` requests
  (whose key or amount is `match`, if given) fail; `GET` lists them, `DELETE` ends them. Kinds: `500`, `timeout`
  (silence, then a cut line) and `cut_before` do nothing; `slow`, `500_after` and `cut_after` do the work first or
  late: it is done, but its answer comes late, wrong or never.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any, Literal
from urllib.parse import unquote

from django.utils.html import format_html, format_html_join
from pydantic import BaseModel, Field

from .books import Answer, Body, Books, RequestRefused, read_request


class Fault(BaseModel):
    on: Literal["charges", "refunds", "cancel", "orders", "prices", "releases", "withdraw", "reads"]
    kind: Literal["500", "500_after", "timeout", "cut_after", "cut_before", "slow"]
    times: int = Field(default=1, ge=1, le=10_000)  # how many requests it still meets
    match: str = ""  # an idempotency key or an amount; empty: any request
    seconds: float = Field(default=30.0, ge=0, le=120)  # how long `timeout` is silent and `slow` takes


class Sandbox(ThreadingTCPServer):
    """The server, its books and the faults that wait."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], data: Path) -> None:
        self.bank, self.trade = Books(data / "ledger.jsonl"), Books(data / "trade.jsonl")
        self.faults: list[Fault] = []
        self.lock = threading.Lock()  # of the faults
        super().__init__(address, Handler)

    def read_ledger(self, name: str, body: Body) -> Answer:
        """Return all that ever happened, and the refunds as they stand."""
        return 200, {"entries": list(self.bank.entries), "refunds": self.bank.list_kind("refund")}

    def change_faults(self, method: str, wanted: Body) -> Answer:
        """Add a fault or end all; return those that wait. Raises RequestRefused for an unknown kind."""
        with self.lock:
            if method == "POST":
                self.faults.append(read_request(Fault, wanted))
            elif method == "DELETE":
                self.faults.clear()
            return 200, {"faults": [fault.model_dump() for fault in self.faults]}

    def take_fault(self, on: str, *values: str) -> Fault | None:
        """Return the fault that meets this request, counted down; `values` are its key and amount."""
        with self.lock:
            fault = next((it for it in self.faults if it.on == on and (not it.match or it.match in values)), None)
            if fault:
                fault.times -= 1
            self.faults = [it for it in self.faults if it.times]
            return fault


def trade_routes(kind: str) -> list[Route]:
    """Return the routes of orders, prices or releases: to make one, to list them, and to withdraw one."""
    return [
        ("GET", f"/{kind}", "reads", lambda box, *_: (200, {"items": box.trade.list_kind(kind)})),
        ("POST", f"/{kind}", kind, lambda box, key, body: box.trade.make(kind, key, body)),
        ("POST", f"/{kind}/([^/]+)/withdraw", "withdraw", lambda box, id, _: box.trade.end("withdraw", kind, id)),
    ]


# Method, path, where a fault is asked for that meets it ("": none does), and what is done with the id in the path, or
# with the idempotency key of a POST without one, and with the body.
Route = tuple[str, str, str, Callable[[Sandbox, str, Body], Answer]]
ROUTES: list[Route] = [
    ("GET", "/(?:ledger)?", "", Sandbox.read_ledger),
    ("POST", "/charges", "charges", lambda box, key, body: box.bank.charge(key, body)),
    ("GET", "/charges/([^/]+)", "charges", lambda box, id, _: box.bank.read_charge(id)),
    ("POST", "/refunds", "refunds", lambda box, key, body: box.bank.refund(key, body)),
    ("POST", "/refunds/([^/]+)/cancel", "cancel", lambda box, id, _: box.bank.end("cancel", "refund", id)),
    ("GET", "/refunds/([^/]+)", "reads", lambda box, id, _: box.bank.read("refund", id)),
    ("GET", "/refunds/by-key/([^/]+)", "reads", lambda box, key, _: box.bank.read_by_key(key)),
    *(route for kind in ("orders", "prices", "releases") for route in trade_routes(kind)),
    *((method, "/faults", "", Sandbox.change_faults) for method in ("GET", "POST", "DELETE")),
]


class Handler(BaseHTTPRequestHandler):
    """One connection, of the standard library's server, because a fault must be able to cut it."""

    protocol_version = "HTTP/1.1"
    timeout = 60.0
    server: Sandbox

    def route(self) -> None:
        """Do what is asked for; every refusal is JSON with a sentence."""
        try:
            body, path = self.read_body(), self.path.split("?")[0]
            for method, pattern, on, work in ROUTES:
                if method == self.command and (match := re.fullmatch(pattern, path)):
                    name = unquote(match[1]) if match.groups() else method
                    if on and name == "POST":
                        name = self.headers.get("Idempotency-Key", "")
                        if not 1 <= len(name) <= 200:
                            raise RequestRefused(400, "an Idempotency-Key of 1 to 200 characters is needed")
                    fault = self.server.take_fault(on, name, str(body.get("amount")))
                    return self.perform(partial(work, self.server, name, body), fault)
            raise RequestRefused(404, f"there is nothing to {self.command} here")
        except RequestRefused as refused:
            self.send(refused.status, {"error": str(refused)})

    do_GET = do_POST = do_DELETE = route

    def perform(self, work: Callable[[], Answer], fault: Fault | None) -> None:
        """Do the work and answer as the fault has it. Raises RequestRefused."""
        kind = fault.kind if fault else ""
        if fault and kind in ("timeout", "slow"):
            time.sleep(fault.seconds)
        if kind == "500":
            raise RequestRefused(500, "a fault that was asked for, before anything was done")
        answer = work() if kind not in ("timeout", "cut_before") else None
        if kind == "500_after":
            raise RequestRefused(500, "a fault that was asked for, after the work was done")
        if answer is None or kind == "cut_after":  # by a reset, without an answer
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
        else:
            self.send(*answer)

    def finish(self) -> None:
        if self.connection.fileno() >= 0:  # not cut
            super().finish()

    def read_body(self) -> Body:
        """Return the request's JSON object; an empty one where there is no body. Raises RequestRefused."""
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        # No browser sends this type across sites without asking first.
        if data and self.headers.get_content_type() != "application/json":
            raise RequestRefused(415, "the body must be application/json")
        try:
            body = json.loads(data or b"{}")
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise RequestRefused(400, "the body must be a JSON object")
        return body

    def send(self, status: int, body: Body) -> None:
        """Send the object, or a ledger as a page to a person's browser."""
        is_page = "entries" in body and "text/html" in self.headers.get("Accept", "")
        data = (draw_page(body["refunds"]) if is_page else json.dumps(body, ensure_ascii=False)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8" if is_page else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Silence: the ledger is the log."""


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Payment sandbox</title><style>:root {{ color-scheme: light dark; font: 14px/2 sans-serif }}</style>
<h1>Payment sandbox</h1><p>No money moves here. Each refund stands here once, however often it was asked for.</p>
<table><tr>{}{}</table></html>"""
COLUMNS = ("at", "id", "charge", "amount", "currency", "card", "reason", "status", "key")


def draw_page(refunds: list[Body]) -> str:
    """Return a page of the refunds as they stand, the newest first."""
    rows = (format_html_join("", "<td>{}", ((it[name],) for name in COLUMNS)) for it in reversed(refunds))
    head = format_html_join("", "<th scope=col>{}", ((name,) for name in COLUMNS))
    return format_html(PAGE, head, format_html_join("", "<tr>{}", ((row,) for row in rows)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m agents.examples.sandbox", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001, help="0: any that is free")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the ledger")
    asked = parser.parse_args()
    try:
        server = Sandbox((asked.host, asked.port), asked.data)
    except (OSError, OverflowError, ValueError) as error:
        sys.stderr.write(f"The payment sandbox cannot start on {asked.host}:{asked.port}: {error}\n")
        return 1
    for name in (signal.SIGTERM, signal.SIGINT):
        # shutdown() waits for serve_forever, which this handler interrupts: it needs a thread of its own.
        signal.signal(name, lambda *_: threading.Thread(target=server.shutdown).start())
    sys.stdout.write("Payment sandbox on http://{}:{}/\n".format(*server.server_address))
    sys.stdout.flush()
    server.serve_forever(poll_interval=0.1)
    server.server_close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
