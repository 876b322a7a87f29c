"""The sandbox's HTTP server: the standard library's, because a fault must be able to cut a connection."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from functools import partial
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from pydantic import BaseModel, Field, ValidationError

from agents.examples import orders

from .books import Body, Books, RequestRefused, SandboxAnswer

MAX_BODY = 64_000  # bytes
MAX_KEY = 200  # characters


class Fault(BaseModel):
    on: Literal["charges", "refunds", "cancel", "orders", "prices", "releases", "withdraw", "reads"]
    kind: Literal["500", "500_after", "timeout", "cut_after", "cut_before", "slow"]
    times: int = Field(default=1, ge=1, le=10_000)  # how many requests it still meets
    match: str = ""  # an idempotency key or an amount; empty: any request
    seconds: float = Field(default=30.0, ge=0, le=120)  # how long `timeout` is silent and `slow` takes


class Faults:
    """The faults that wait. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Fault] = []

    def add(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """Add a fault; return those that wait. Raises RequestRefused for one that there is not."""
        try:
            fault = Fault.model_validate(asked)
        except ValidationError as error:
            wrong = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
            raise RequestRefused(422, "; ".join(wrong)) from error
        with self._lock:
            self._waiting.append(fault)
        return self.waiting()

    def take(self, on: str, *values: str) -> Fault | None:
        """Return the fault that meets this request, counted down; `values` are its key and amount."""
        with self._lock:
            for fault in self._waiting:
                if fault.on == on and (not fault.match or fault.match in values):
                    fault.times -= 1
                    self._waiting = [waiting for waiting in self._waiting if waiting.times]
                    return fault
        return None

    def clear(self) -> list[dict[str, Any]]:
        with self._lock:
            self._waiting = []
        return []

    def waiting(self) -> list[dict[str, Any]]:
        with self._lock:
            return [fault.model_dump() for fault in self._waiting]


class Sandbox(ThreadingHTTPServer):
    """The server, its books and its faults."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], data: Path) -> None:
        self.bank = Books(data / "ledger.jsonl", find_charge)
        self.trade = Books(data / "trade.jsonl", find_charge)
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
        self.bank.close()
        self.trade.close()


def find_charge(charge: str) -> Body | None:
    """Return what was paid for one of the shop's orders. Raises OrdersRefused."""
    order = orders.find(charge.removeprefix("ch_"))
    if order is None or order.charge != charge:
        return None
    return {"id": charge, "amount": f"{order.left:.2f}", "currency": order.currency, "card": order.card}


def read_ledger(sandbox: Sandbox, name: str, body: Body) -> SandboxAnswer:
    """Return all that ever happened, and the refunds as they stand."""
    return SandboxAnswer(200, {"entries": list(sandbox.bank.entries), "refunds": sandbox.bank.all_of("refund")})


def trade_routes(kind: str) -> list[Route]:
    """Return the routes of orders, prices or releases: to make one, to list them, and to withdraw one."""
    return [
        ("GET", f"/{kind}", "reads", lambda sandbox, *_: SandboxAnswer(200, {"items": sandbox.trade.all_of(kind)})),
        ("POST", f"/{kind}", kind, lambda sandbox, key, body: sandbox.trade.make(kind, key, body)),
        ("POST", f"/{kind}/*/withdraw", "withdraw", lambda sandbox, id, _: sandbox.trade.end("withdraw", kind, id)),
    ]


# Method, path ("*" is one part), where a fault is asked for that meets it ("": none does), and what is done with that
# part, or with the idempotency key of a POST without one, and with the body.
Route = tuple[str, str, str, Callable[[Sandbox, str, Body], SandboxAnswer]]
ROUTES: list[Route] = [
    ("GET", "/", "", read_ledger),
    ("GET", "/ledger", "", read_ledger),
    ("POST", "/charges", "charges", lambda sandbox, key, body: sandbox.bank.charge(key, body)),
    ("GET", "/charges/*", "charges", lambda sandbox, charge, _: sandbox.bank.read_charge(charge)),
    ("POST", "/refunds", "refunds", lambda sandbox, key, body: sandbox.bank.refund(key, body)),
    ("POST", "/refunds/*/cancel", "cancel", lambda sandbox, refund, _: sandbox.bank.end("cancel", "refund", refund)),
    ("GET", "/refunds/*", "reads", lambda sandbox, refund, _: sandbox.bank.read("refund", refund)),
    ("GET", "/refunds/by-key/*", "reads", lambda sandbox, key, _: sandbox.bank.read_by_key(key)),
    *(route for kind in ("orders", "prices", "releases") for route in trade_routes(kind)),
    ("GET", "/faults", "", lambda sandbox, *_: SandboxAnswer(200, {"faults": sandbox.faults.waiting()})),
    ("POST", "/faults", "", lambda sandbox, _, body: SandboxAnswer(200, {"faults": sandbox.faults.add(body)})),
    ("DELETE", "/faults", "", lambda sandbox, *_: SandboxAnswer(200, {"faults": sandbox.faults.clear()})),
]


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
            self.answer(200, draw_ledger(**answer.body).encode(), "text/html; charset=utf-8")
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
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store", **PAGE_HEADERS}
        for name, value in (headers | (extra or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Silence: the ledger is the log."""


PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}
_STYLE = """
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
caption { padding: 1.5rem 0 .5rem; font-weight: 600; text-align: start }
th, td { padding: .3rem .75rem .3rem 0; border-block-end: 1px solid #8886; text-align: start; overflow-wrap: anywhere }
td.amount, th.amount { text-align: end; white-space: nowrap }
"""
_REFUNDS = ("id", "charge", "amount", "currency", "card", "reason", "status", "at", "key")
_ENTRIES = ("seq", "at", "kind", "id", "charge", "amount", "currency", "key")


def draw_ledger(entries: list[dict[str, Any]], refunds: list[dict[str, Any]]) -> str:
    """Return the whole page: refunds as they stand, then every entry, the newest first."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Payment sandbox</title><style>{_STYLE}</style><h1>Payment sandbox</h1>"
        "<p>No money moves here. Every refund stands in this ledger once, however often it was asked for.</p>"
        f"{_table(f'{len(refunds)} refunds', _REFUNDS, reversed(refunds))}"
        f"{_table(f'{len(entries)} entries', _ENTRIES, reversed(entries))}</html>"
    )


def _table(caption: str, columns: tuple[str, ...], rows: Iterable[dict[str, Any]]) -> str:
    head = "".join(f"<th scope=col{_class_of(name)}>{name}" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td{_class_of(name)}>{escape(str(row.get(name, '')))}" for name in columns) for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</thead><tbody>{body}</tbody></table>"


def _class_of(name: str) -> str:
    return " class=amount" if name == "amount" else ""
