"""What the sandbox knows: a ledger on disk, and from it the charges, refunds, orders, prices and releases.

Whatever changes is one line of JSON, only ever appended to, synced before anybody is told. Each key does one thing
once: the same request under it gets the same answer, another one is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from agents.examples.money import CURRENCIES, exchanged
from agents.examples.orders import OrdersRefused

Body = dict[str, Any]
ENDED = {"cancel": "cancelled", "withdraw": "withdrawn"}  # an entry, and what has become of its thing


class LedgerBroken(Exception):
    """A line of the ledger's file cannot be read, and it is not the unfinished last one."""


class RequestRefused(Exception):
    """The request was refused and nothing was done. `status` is the HTTP status to say so with."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class SandboxAnswer:
    status: int
    body: Body
    replayed: bool = False


class Books:
    """The ledger and what it adds up to. Safe for threads: one at a time."""

    def __init__(self, path: Path, find_charge: Callable[[str], Body | None]) -> None:
        self.lock = threading.RLock()
        self.entries: list[Body] = []
        self._find_charge = find_charge
        self._things: dict[str, dict[str, Body]] = {}  # by kind, then by id
        self._keys: dict[str, tuple[str, str]] = {}  # key -> (digest of the request, id)
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

    def all_of(self, kind: str) -> list[Body]:
        """Return everything of a kind, oldest first."""
        with self.lock:
            return [dict(thing) for thing in self._things.get(kind, {}).values()]

    def charge(self, key: str, body: Body) -> SandboxAnswer:
        """Take money from a card. Raises RequestRefused."""

        def work() -> Body:
            amount, currency = _money(body)
            id = str(body.get("id") or f"ch_{_short(key)}")
            if not re.fullmatch(r"ch_[A-Za-z0-9_-]{1,40}", id) or id in self._things.get("charge", {}):
                raise RequestRefused(422, f"the id {id!r} is taken, or is no id")
            return {"id": id, "amount": amount, "currency": currency, "card": _text(body, "card", 4)}

        return self._once("charge", key, {"charge": body}, work)

    def refund(self, key: str, body: Body) -> SandboxAnswer:
        """Give back some of a charge. Raises RequestRefused."""

        def work() -> Body:
            amount, currency = _money(body)
            charge = self.know(_text(body, "charge", 60))
            taken = exchanged(Decimal(amount), currency, charge["currency"])
            left = Decimal(charge["amount"]) - self._given_back(charge["id"])
            if taken > left:
                least = f"{amount} {currency} is more than the {left} {charge['currency']} left of {charge['id']}"
                raise RequestRefused(422, least)
            return {
                "id": f"re_{_short(key)}",
                "charge": charge["id"],
                "card": charge["card"],
                "amount": amount,
                "currency": currency,
                "taken": f"{taken:.2f}",  # of the charge, in its currency
                "reason": _text(body, "reason", 200, optional=True),
                "reference": _text(body, "reference", 100, optional=True),
            }

        return self._once("refund", key, {"refund": body}, work)

    def make(self, kind: str, key: str, wanted: Body) -> SandboxAnswer:
        """Place an order, put in a price, or release a version. Raises RequestRefused."""

        def work() -> Body:
            if not wanted:
                raise RequestRefused(422, "there is nothing in it")
            return {"of": kind, "id": f"{kind[0]}_{_short(key)[:12]}", "wanted": wanted}

        return self._once("make", key, [kind, wanted], work)

    def end(self, verb: str, kind: str, id: str) -> SandboxAnswer:
        """Cancel or withdraw something; again and again is as good as once. Raises RequestRefused."""
        with self.lock:
            if self._known(kind, id)["status"] != ENDED[verb]:
                self._append(verb, of=kind, id=id)
            return SandboxAnswer(200, self._known(kind, id))

    def read(self, kind: str, id: str) -> SandboxAnswer:
        """Return one thing. Raises RequestRefused."""
        with self.lock:
            return SandboxAnswer(200, self._known(kind, id))

    def read_by_key(self, key: str) -> SandboxAnswer:
        """Return the refund that was made under an idempotency key: how a client that lost the answer finds out."""
        with self.lock:
            return self.read("refund", self._keys.get(key, ("", ""))[1])

    def read_charge(self, id: str) -> SandboxAnswer:
        """Return a charge, with each refund of it by its maker's reference. Raises RequestRefused."""
        with self.lock:
            try:
                charge = self.know(id)
            except RequestRefused as refused:
                raise RequestRefused(404, str(refused)) from refused
            names = ("id", "amount", "currency", "taken", "status", "reference")
            refunds = [{name: each[name] for name in names} for each in self.all_of("refund") if each["charge"] == id]
            shown = {name: charge[name] for name in ("id", "amount", "currency", "card")}
            return SandboxAnswer(200, {**shown, "refunded": f"{self._given_back(id):.2f}", "refunds": refunds})

    def know(self, id: str) -> Body:
        """Return a charge; one of the shop's is entered when it is first asked for. Raises RequestRefused."""
        with self.lock:
            if id not in self._things.get("charge", {}):
                try:
                    facts = self._find_charge(id)
                except OrdersRefused as error:
                    raise RequestRefused(422, f"there is no charge {id!r}; {error}") from error
                if facts is None:
                    raise RequestRefused(422, f"there is no charge {id!r}")
                self._once("charge", f"shop-{id}", {"charge": facts}, lambda: facts)
            return self._things["charge"][id]

    def _once(self, kind: str, key: str, request: Any, work: Callable[[], Body]) -> SandboxAnswer:
        """Enter what `work` returns, or find what the same request made before. Raises RequestRefused."""
        with self.lock:
            wanted = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
            digest, id = self._keys.get(key, ("", ""))
            if digest and digest != wanted:
                raise RequestRefused(409, "this idempotency key was used for another request")
            if not digest:
                facts = work()
                id = facts["id"]
                self._append(kind, key=key, request=wanted, **facts)
            made = next(things[id] for things in self._things.values() if id in things)
            return SandboxAnswer(201, made, replayed=bool(digest))

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
        if status := ENDED.get(entry["kind"]):
            self._things[entry.get("of", "refund")][entry["id"]] |= {"status": status}
            return
        thing = {name: entry[name] for name in entry if name not in ("seq", "kind", "request")}
        if entry["kind"] == "refund":
            thing = {"taken": thing["amount"], "reference": "", **thing}
        status = "made" if entry["kind"] == "make" else "succeeded"
        kind = str(entry.get("of", entry["kind"]))
        self._things.setdefault(kind, {})[entry["id"]] = thing | {"status": status}
        self._keys[entry["key"]] = (entry["request"], entry["id"])

    def _known(self, kind: str, id: str) -> Body:
        found = self._things.get(kind, {}).get(id)
        if found is None:
            raise RequestRefused(404, "there is no such refund" if kind == "refund" else "there is no such thing")
        return found

    def _given_back(self, charge: str) -> Decimal:
        mine = [each for each in self.all_of("refund") if each["charge"] == charge and each["status"] == "succeeded"]
        return sum((Decimal(refund["taken"]) for refund in mine), Decimal(0))


def _money(body: Body) -> tuple[str, str]:
    amount, currency = body.get("amount"), body.get("currency")
    if not isinstance(amount, str) or not re.fullmatch(r"[0-9]{1,10}\.[0-9]{2}", amount) or not Decimal(amount):
        raise RequestRefused(422, 'an amount is text with two decimals and more than nothing, like "12.50"')
    if currency not in CURRENCIES:
        raise RequestRefused(422, f"currency must be one of {', '.join(CURRENCIES)}")
    return f"{Decimal(amount):.2f}", str(currency)


def _text(body: Body, name: str, limit: int, *, optional: bool = False) -> str:
    value = body.get(name, "" if optional else None)
    if not isinstance(value, str) or len(value) > limit or not (value or optional):
        raise RequestRefused(422, f"{name} is text of at most {limit} characters")
    return value


def _short(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:16]
