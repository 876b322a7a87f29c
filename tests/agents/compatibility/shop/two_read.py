"""The same in version 2."""

from __future__ import annotations

from typing import Any

from agents import Append, effect

from . import SENT, two


class Shop(two.Shop):
    """Ask, buy, look at what was bought, ask again."""

    @effect(undo="sell", readable="find", retry=2, backoff=0)
    def buy(self, what: str, cut: bool, *, key: str) -> dict[str, Any]:
        SENT.append(f"buy {what} in 2")
        return {"slip": "R-2", "papers": Append([what])}

    def find(self, slip: str, *, key: str) -> dict[str, Any] | None:
        return {"slip": f"{slip}, found"}
