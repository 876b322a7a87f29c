"""What the sandbox knows: a ledger on disk, and from it the charges, refunds, orders, prices and releases.

Whatever changes is one line of JSON, only ever appended to, synced before anybody is told. Each key does one thing
once: the same request under it gets the same answer, another one is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from agents.examples import orders
from agents.examples.money import Currency, exchange_money

Body = dict[str, Any]
Answer = tuple[int, Body]  # the HTTP status, and an object
Request = TypeVar("Request", bound=BaseModel)
Amount = Annotated[str, Field(pattern=r"^[0-9]{1,10}\.[0-9]{2}$")]  # like "12.50"
ENDED = {"cancel": "cancelled", "withdraw": "withdrawn"}  # an entry, and what has become of its thing


class RequestRefused(Exception):
    """The request was refused and nothing was done. `status` is the HTTP status to say so with."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Charge(BaseModel):
    amount: Amount
    currency: Currency
    card: str = Field(max_length=4)


class Refund(BaseModel):
    charge: str = Field(max_length=60)
    amount: Amount
    currency: Currency
    reason: str = Field(default="", max_length=200)
    reference: str = Field(default="", max_length=100)


def read_request(request: type[Request], body: Body) -> Request:
    """Return the request as its noun. Raises RequestRefused."""
    try:
        return request.model_validate(body)
    except ValidationError as error:
        raise RequestRefused(422, str(error)) from error


class Books:
    """The ledger and what it adds up to. Safe for threads: one at a time."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError where a line of the file cannot be read, and it is not the unfinished last one."""
        self.lock = threading.RLock()
        self.entries: list[Body] = []
        self._things: dict[tuple[str, str], Body] = {}  # (kind, id) -> thing, oldest first
        self._keys: dict[str, tuple[str, tuple[str, str]]] = {}  # key -> (digest of the request, (kind, id))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(self._file, whole)  # written while the process died: nobody was told of it
        for number, line in enumerate(data[:whole].splitlines(), start=1):
            try:
                self._apply(json.loads(line))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error

    def list_kind(self, kind: str) -> list[Body]:
        """Return everything of a kind, oldest first."""
        with self.lock:
            return [dict(thing) for (known, _), thing in self._things.items() if known == kind]

    def read(self, kind: str, id: str) -> Answer:
        """Return one thing. Raises RequestRefused."""
        with self.lock:
            if thing := self._things.get((kind, id)):
                return 200, dict(thing)
        raise RequestRefused(404, "there is no such refund" if kind == "refund" else "there is no such thing")

    def read_by_key(self, key: str) -> Answer:
        """Return the refund that was made under an idempotency key: how a client that lost the answer finds out."""
        return self.read("refund", self._keys.get(key, ("", ("", "")))[1][1])

    def read_charge(self, id: str) -> Answer:
        """Return a charge, with each refund of it by its maker's reference. Raises RequestRefused."""
        with self.lock:
            facts = {"refunded": f"{self._given_back(id):.2f}", "refunds": self._refunds_of(id)}
            return 200, self._know_charge(id) | facts

    def charge(self, key: str, body: Body) -> Answer:
        """Take money from a card. Raises RequestRefused."""
        facts = {"id": f"ch_{shorten(key)}", **read_request(Charge, body).model_dump()}
        return self._do_once("charge", key, {"charge": body}, lambda: facts)

    def refund(self, key: str, body: Body) -> Answer:
        """Give back some of a charge. Raises RequestRefused."""

        def work() -> Body:
            refund = read_request(Refund, body)
            charge = self._know_charge(refund.charge)
            taken = exchange_money(Decimal(refund.amount), refund.currency, charge["currency"])
            rest = Decimal(charge["amount"]) - self._given_back(charge["id"])
            if not 0 < taken <= rest:
                wanted, most = f"{refund.amount} {refund.currency}", f"{rest} {charge['currency']}"
                raise RequestRefused(422, f"{wanted} is nothing, or more than the {most} left of {charge['id']}")
            facts = {"id": f"re_{shorten(key)}", "card": charge["card"], "taken": f"{taken:.2f}"}
            return refund.model_dump() | facts

        return self._do_once("refund", key, {"refund": body}, work)

    def make(self, kind: str, key: str, wanted: Body) -> Answer:
        """Place an order, put in a price, or release a version. Raises RequestRefused."""
        thing = {"of": kind, "id": f"{kind[0]}_{shorten(key)[:12]}", "wanted": wanted}
        return self._do_once("make", key, [kind, wanted], lambda: thing)

    def end(self, verb: str, kind: str, id: str) -> Answer:
        """Cancel or withdraw something; again and again is as good as once. Raises RequestRefused."""
        with self.lock:
            if self.read(kind, id)[1]["status"] != ENDED[verb]:
                self._append(verb, of=kind, id=id)
            return self.read(kind, id)

    def _know_charge(self, id: str) -> Body:
        """Return a charge; one of the shop's orders is entered when it is first asked for. Raises RequestRefused."""
        if ("charge", id) not in self._things:
            try:
                order = orders.find(id.removeprefix("ch_"))
            except orders.OrdersRefused as error:
                raise RequestRefused(404, f"there is no charge {id!r}; {error}") from error
            if order is None or order.charge != id:
                raise RequestRefused(404, f"there is no charge {id!r}")
            facts = {"id": id, "amount": f"{order.refundable:.2f}", "currency": order.currency, "card": order.card}
            self._do_once("charge", f"shop-{id}", {"charge": facts}, lambda: facts)
        return self._things["charge", id]

    def _refunds_of(self, charge: str) -> list[Body]:
        return [refund for refund in self.list_kind("refund") if refund["charge"] == charge]

    def _given_back(self, charge: str) -> Decimal:
        taken = (Decimal(it["taken"]) for it in self._refunds_of(charge) if it["status"] == "succeeded")
        return sum(taken, Decimal(0))

    def _do_once(self, entry: str, key: str, request: Any, work: Callable[[], Body]) -> Answer:
        """Enter what `work` returns (201), or find what the same request made before (200). Raises RequestRefused."""
        with self.lock:
            wanted = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
            known, _ = self._keys.get(key, ("", None))
            if known not in ("", wanted):
                raise RequestRefused(409, "this idempotency key was used for another request")
            if not known:
                self._append(entry, key=key, request=wanted, **work())
            return 200 if known else 201, dict(self._things[self._keys[key][1]])

    def _append(self, kind: str, **facts: Any) -> None:
        """Add an entry durably. Raises OSError with the file as it was."""
        entry: Body = {"seq": len(self.entries) + 1, "at": datetime.now(UTC).isoformat(), "kind": kind, **facts}
        end = os.fstat(self._file).st_size
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        try:
            if os.write(self._file, line) != len(line):
                raise OSError("the ledger's disk is full")
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, end)
            raise
        self._apply(entry)

    def _apply(self, entry: Body) -> None:
        self.entries.append(entry)
        kind = str(entry.get("of", "refund" if entry["kind"] == "cancel" else entry["kind"]))
        if status := ENDED.get(entry["kind"]):
            self._things[kind, entry["id"]] |= {"status": status}
            return
        thing = {name: entry[name] for name in entry if name not in ("seq", "kind", "request")}
        self._things[kind, entry["id"]] = thing | {"status": "made" if entry["kind"] == "make" else "succeeded"}
        self._keys[entry["key"]] = (entry["request"], (kind, entry["id"]))


def shorten(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:16]
