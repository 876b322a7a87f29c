"""Version 1 whose provider tells what became of a purchase, and takes no key twice."""

from __future__ import annotations

from typing import Any

from agents import Append, EffectUnknown, effect

from . import SENT, one


class Shop(one.Shop):
    """Ask, buy, look at what was bought, ask again."""

    @effect(undo="sell", readable="find", retry=2, backoff=0)
    def buy(self, what: str, cut: bool, *, key: str) -> dict[str, Any]:
        SENT.append(f"buy {what}")
        if cut:
            raise EffectUnknown("the line was cut")
        return {"receipt": "R-1", "bills": Append([what])}

    def find(self, receipt: str, *, key: str) -> dict[str, Any] | None:
        raise EffectUnknown("it does not answer")
