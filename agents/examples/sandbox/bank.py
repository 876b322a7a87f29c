"""The sandbox's bank: charges, refunds and their cancellation, each key once."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from agents.examples.money import CURRENCIES, exchanged
from agents.examples.orders import OrdersRefused

from .ledger import Entry, LedgerFile

Body = dict[str, Any]


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


class Books(ABC):
    """The state of a ledger, and the only way to change it. Safe for threads: one at a time."""

    def __init__(self, ledger: LedgerFile) -> None:
        self._lock = threading.Lock()
        self._ledger = ledger
        self._keys: dict[str, tuple[str, str]] = {}  # key -> (digest of the request, id)
        for entry in ledger.entries:
            self._apply(entry)

    @abstractmethod
    def _apply(self, entry: Entry) -> None:
        """Change the state as an entry says."""

    def _done(self, key: str, request: Any) -> str:
        """Return the id that this request made before; "" for a new key. Raises RequestRefused for another request."""
        digest, made = self._keys.get(key, ("", ""))
        if digest and digest != _digest(request):
            raise RequestRefused(409, "this idempotency key was used for another request")
        return made

    def _enter(self, kind: str, key: str, request: Any, facts: Body) -> None:
        self._apply(self._ledger.append(kind, key=key, request=_digest(request), **facts))


class Bank(Books):
    """A payment, with what of it was given back."""

    def __init__(self, ledger: LedgerFile, find_charge: Callable[[str], Body | None]) -> None:
        self._find_charge = find_charge
        self._charges: dict[str, Body] = {}
        self._refunds: dict[str, Body] = {}
        super().__init__(ledger)

    def know(self, charge: str) -> None:
        """Enter a charge of the shop's, unless it is there. Raises RequestRefused."""
        with self._lock:
            self._charge_of(charge)

    def charge(self, key: str, body: Body) -> SandboxAnswer:
        """Take money from a card. Raises RequestRefused."""
        with self._lock:
            request = {"charge": body}
            if done := self._done(key, request):
                return SandboxAnswer(201, self._charges[done], replayed=True)
            amount, currency = _money(body)
            charge = str(body.get("id") or f"ch_{_short(key)}")
            if not re.fullmatch(r"ch_[A-Za-z0-9_-]{1,40}", charge) or charge in self._charges:
                raise RequestRefused(422, f"the id {charge!r} is taken, or is no id")
            facts = {"id": charge, "amount": amount, "currency": currency, "card": _text(body, "card", 4)}
            self._enter("charge", key, request, facts)
            return SandboxAnswer(201, self._charges[charge])

    def refund(self, key: str, body: Body) -> SandboxAnswer:
        """Give back some of a charge. Raises RequestRefused."""
        with self._lock:
            request = {"refund": body}
            if done := self._done(key, request):
                return SandboxAnswer(201, self._refunds[done], replayed=True)
            amount, currency = _money(body)
            charge = self._charge_of(_text(body, "charge", 60))
            taken = exchanged(Decimal(amount), currency, charge["currency"])
            left = Decimal(charge["amount"]) - self._given_back(charge["id"])
            if taken > left:
                raise RequestRefused(
                    422, f"{amount} {currency} is more than the {left} {charge['currency']} left of {charge['id']}"
                )
            facts = {
                "id": f"re_{_short(key)}",
                "charge": charge["id"],
                "card": charge["card"],
                "amount": amount,
                "currency": currency,
                "taken": f"{taken:.2f}",  # of the charge, in its currency
                "reason": _text(body, "reason", 200, optional=True),
                "reference": _text(body, "reference", 100, optional=True),
            }
            self._enter("refund", key, request, facts)
            return SandboxAnswer(201, self._refunds[facts["id"]])

    def cancel(self, refund: str) -> SandboxAnswer:
        """Take a refund back; again and again is as good as once. Raises RequestRefused."""
        with self._lock:
            found = self._known(refund)
            if found["status"] != "cancelled":
                self._apply(self._ledger.append("cancel", id=refund, charge=found["charge"], amount=found["amount"]))
            return SandboxAnswer(200, found)

    def read(self, refund: str) -> SandboxAnswer:
        with self._lock:
            return SandboxAnswer(200, self._known(refund))

    def read_by_key(self, key: str) -> SandboxAnswer:
        """Return the refund that was made under an idempotency key: how a client that lost the answer finds out."""
        with self._lock:
            _, refund = self._keys.get(key, ("", ""))
            return SandboxAnswer(200, self._known(refund))

    def read_charge(self, charge: str) -> SandboxAnswer:
        """Return a charge with what has been given back of it, and each refund by its maker's reference.

        Raises RequestRefused.
        """
        with self._lock:
            try:
                facts = self._charge_of(charge)
            except RequestRefused as refused:
                raise RequestRefused(404, str(refused)) from refused
            names = ("id", "amount", "currency", "taken", "status", "reference")
            made = [{name: each.get(name, "") for name in names} for each in self._refunds_of(charge)]
            shown = {name: facts[name] for name in ("id", "amount", "currency", "card")}
            return SandboxAnswer(200, {**shown, "refunded": f"{self._given_back(charge):.2f}", "refunds": made})

    def entries(self) -> list[Entry]:
        with self._lock:
            return list(self._ledger.entries)

    def refunds(self) -> list[Body]:
        with self._lock:
            return [dict(refund) for refund in self._refunds.values()]

    def _apply(self, entry: Entry) -> None:
        facts = {name: entry[name] for name in entry if name not in ("seq", "kind", "request")}
        if entry["kind"] == "charge":
            self._charges[entry["id"]] = facts
        elif entry["kind"] == "refund":
            self._refunds[entry["id"]] = {"taken": facts["amount"], **facts, "status": "succeeded"}
        elif entry["kind"] == "cancel":
            self._refunds[entry["id"]] |= {"status": "cancelled"}
            return
        self._keys[entry["key"]] = (entry["request"], entry["id"])

    def _known(self, refund: str) -> Body:
        if refund not in self._refunds:
            raise RequestRefused(404, "there is no such refund")
        return self._refunds[refund]

    def _charge_of(self, charge: str) -> Body:
        if charge not in self._charges:
            try:
                facts = self._find_charge(charge)
            except OrdersRefused as error:
                raise RequestRefused(422, f"there is no charge {charge!r}; {error}") from error
            if facts is None:
                raise RequestRefused(422, f"there is no charge {charge!r}")
            self._enter("charge", f"shop-{charge}", {"charge": facts}, facts)
        return self._charges[charge]

    def _given_back(self, charge: str) -> Decimal:
        mine = self._refunds_of(charge)
        return sum((Decimal(refund["taken"]) for refund in mine if refund["status"] == "succeeded"), Decimal(0))

    def _refunds_of(self, charge: str) -> list[Body]:
        return [refund for refund in self._refunds.values() if refund["charge"] == charge]


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


def _digest(request: Any) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def _short(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:16]
