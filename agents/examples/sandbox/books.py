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
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, Field, ValidationError

from agents.examples import orders
from agents.examples.money import Currency, exchange_money

Body = dict[str, Any]
Request = TypeVar("Request", bound=BaseModel)
ENDED = {"cancel": "cancelled", "withdraw": "withdrawn"}  # an entry, and what has become of its thing


class LedgerBroken(Exception):
    """A line of the ledger's file cannot be read, and it is not the unfinished last one."""


class RequestRefused(Exception):
    """The request was refused and nothing was done. `status` is the HTTP status to say so with."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class SandboxAnswer(NamedTuple):
    status: int
    body: Body
    replayed: bool = False


class Charge(BaseModel):
    amount: str = Field(pattern=r"^[0-9]{1,10}\.[0-9]{2}$")  # like "12.50"
    currency: Currency
    card: str = Field(max_length=4)
    id: str = Field(default="", pattern=r"^(ch_[A-Za-z0-9_-]{1,40})?$")


class Refund(BaseModel):
    charge: str = Field(max_length=60)
    amount: str = Field(pattern=r"^[0-9]{1,10}\.[0-9]{2}$")
    currency: Currency
    reason: str = Field(default="", max_length=200)
    reference: str = Field(default="", max_length=100)


def read_request(request: type[Request], body: Body) -> Request:
    """Raises RequestRefused."""
    try:
        wanted = request.model_validate(body)
    except ValidationError as error:
        raise RequestRefused(422, str(error)) from error
    if not Decimal(getattr(wanted, "amount", "1")):
        raise RequestRefused(422, "an amount is more than nothing")
    return wanted


class Books:
    """The ledger and what it adds up to. Safe for threads: one at a time."""

    def __init__(self, path: Path) -> None:
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
                raise LedgerBroken(f"{path}, line {number}: {error}") from error

    def close(self) -> None:
        os.close(self._file)

    def list_kind(self, kind: str) -> list[Body]:
        """Return everything of a kind, oldest first."""
        with self.lock:
            return [dict(thing) for (known, _), thing in self._things.items() if known == kind]

    def read_all(self) -> SandboxAnswer:
        """Return all that ever happened, and the refunds as they stand."""
        return SandboxAnswer(200, {"entries": list(self.entries), "refunds": self.list_kind("refund")})

    def charge(self, key: str, body: Body) -> SandboxAnswer:
        """Take money from a card. Raises RequestRefused."""

        def work() -> Body:
            charge = read_request(Charge, body)
            charge.id = charge.id or f"ch_{shorten(key)}"
            if ("charge", charge.id) in self._things:
                raise RequestRefused(422, f"the id {charge.id!r} is taken")
            return charge.model_dump()

        return self._do_once("charge", key, {"charge": body}, work)

    def refund(self, key: str, body: Body) -> SandboxAnswer:
        """Give back some of a charge. Raises RequestRefused."""

        def work() -> Body:
            refund = read_request(Refund, body)
            charge = self._know_charge(refund.charge)
            taken = exchange_money(Decimal(refund.amount), refund.currency, charge["currency"])
            rest = Decimal(charge["amount"]) - self._given_back(charge["id"])
            if taken > rest:
                wanted, most = f"{refund.amount} {refund.currency}", f"{rest} {charge['currency']}"
                raise RequestRefused(422, f"{wanted} is more than the {most} left of {charge['id']}")
            facts = {"id": f"re_{shorten(key)}", "card": charge["card"], "taken": f"{taken:.2f}"}
            return refund.model_dump() | facts

        return self._do_once("refund", key, {"refund": body}, work)

    def make(self, kind: str, key: str, wanted: Body) -> SandboxAnswer:
        """Place an order, put in a price, or release a version. Raises RequestRefused."""
        if not wanted:
            raise RequestRefused(422, "there is nothing in it")
        thing = {"of": kind, "id": f"{kind[0]}_{shorten(key)[:12]}", "wanted": wanted}
        return self._do_once("make", key, [kind, wanted], lambda: thing)

    def end(self, verb: str, kind: str, id: str) -> SandboxAnswer:
        """Cancel or withdraw something; again and again is as good as once. Raises RequestRefused."""
        with self.lock:
            if self.read(kind, id).body["status"] != ENDED[verb]:
                self._append(verb, of=kind, id=id)
            return self.read(kind, id)

    def read(self, kind: str, id: str) -> SandboxAnswer:
        """Return one thing. Raises RequestRefused."""
        with self.lock:
            if thing := self._things.get((kind, id)):
                return SandboxAnswer(200, thing)
        raise RequestRefused(404, "there is no such refund" if kind == "refund" else "there is no such thing")

    def read_by_key(self, key: str) -> SandboxAnswer:
        """Return the refund that was made under an idempotency key: how a client that lost the answer finds out."""
        return self.read("refund", self._keys.get(key, ("", ("", "")))[1][1])

    def read_charge(self, id: str) -> SandboxAnswer:
        """Return a charge, with each refund of it by its maker's reference. Raises RequestRefused."""
        with self.lock:
            charge = self._know_charge(id, status=404)
            names = ("id", "amount", "currency", "taken", "status", "reference")
            refunds = [{name: it[name] for name in names} for it in self.list_kind("refund") if it["charge"] == id]
            shown = {name: charge[name] for name in ("id", "amount", "currency", "card")}
            return SandboxAnswer(200, {**shown, "refunded": f"{self._given_back(id):.2f}", "refunds": refunds})

    def _know_charge(self, id: str, status: int = 422) -> Body:
        """Return a charge; one of the shop's orders is entered when it is first asked for. Raises RequestRefused."""
        with self.lock:
            if ("charge", id) not in self._things:
                try:
                    order = orders.find(id.removeprefix("ch_"))
                except orders.OrdersRefused as error:
                    raise RequestRefused(status, f"there is no charge {id!r}; {error}") from error
                if order is None or order.charge != id:
                    raise RequestRefused(status, f"there is no charge {id!r}")
                paid = {"amount": f"{order.refundable:.2f}", "currency": order.currency, "card": order.card}
                self._do_once("charge", f"shop-{id}", {"charge": {"id": id, **paid}}, lambda: {"id": id, **paid})
            return self._things["charge", id]

    def _given_back(self, charge: str) -> Decimal:
        refunds = (it for it in self.list_kind("refund") if it["charge"] == charge and it["status"] == "succeeded")
        return sum((Decimal(refund["taken"]) for refund in refunds), Decimal(0))

    def _do_once(self, entry: str, key: str, request: Any, work: Callable[[], Body]) -> SandboxAnswer:
        """Enter what `work` returns, or find what the same request made before. Raises RequestRefused."""
        with self.lock:
            wanted = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
            replayed = key in self._keys
            if replayed and self._keys[key][0] != wanted:
                raise RequestRefused(409, "this idempotency key was used for another request")
            if not replayed:
                self._append(entry, key=key, request=wanted, **work())
            return SandboxAnswer(201, self._things[self._keys[key][1]], replayed)

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
