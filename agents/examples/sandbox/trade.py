"""The sandbox's supplier, till and servers: orders, prices and releases, each key once, and their cancellation."""

from __future__ import annotations

import hashlib

from .bank import Body, Books, RequestRefused, SandboxAnswer
from .ledger import LedgerFile


class Trade(Books):
    """The orders placed, the prices set, and the versions released."""

    def __init__(self, ledger: LedgerFile) -> None:
        self._made: dict[str, Body] = {}
        super().__init__(ledger)

    def make(self, kind: str, key: str, wanted: Body) -> SandboxAnswer:
        """Place an order, put in a price, or release a version. Raises RequestRefused."""
        with self._lock:
            request = [kind, wanted]
            if done := self._done(key, request):
                return SandboxAnswer(201, self._made[done], replayed=True)
            if not wanted:
                raise RequestRefused(422, "there is nothing in it")
            id = f"{kind[0]}_{hashlib.sha256(key.encode()).hexdigest()[:12]}"
            self._enter("make", key, request, {"of": kind, "id": id, "wanted": wanted})
            return SandboxAnswer(201, self._made[id])

    def withdraw(self, kind: str, id: str) -> SandboxAnswer:
        """Take one back; again and again is as good as once. Raises RequestRefused."""
        with self._lock:
            found = self._made.get(id)
            if found is None or found["of"] != kind:
                raise RequestRefused(404, "there is no such thing")
            if found["status"] != "withdrawn":
                self._apply(self._ledger.append("withdraw", of=kind, id=id))
            return SandboxAnswer(200, self._made[id])

    def made(self, kind: str) -> SandboxAnswer:
        """Return all of a kind, oldest first."""
        with self._lock:
            return SandboxAnswer(200, {"items": [dict(each) for each in self._made.values() if each["of"] == kind]})

    def _apply(self, entry: Body) -> None:
        if entry["kind"] == "withdraw":
            self._made[entry["id"]] |= {"status": "withdrawn"}
            return
        facts = {name: entry[name] for name in ("id", "of", "key", "wanted", "at")}
        self._made[entry["id"]] = {**facts, "status": "made"}
        self._keys[entry["key"]] = (entry["request"], entry["id"])
