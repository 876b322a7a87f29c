"""Version 1 whose provider says at once that it never heard of a purchase."""

from __future__ import annotations

from typing import Any

from agents import Append, EffectUnknown, effect

from . import SENT, one


class Shop(one.Shop):
    """Ask, buy, look at what was bought, ask again."""

    @effect(undo="sell", readable="find", idempotent=True, retry=2, backoff=0)
    def buy(self, what: str, cut: bool, *, key: str) -> dict[str, Any]:
        SENT.append(f"buy {what}")
        if cut and len(SENT) == 1:
            raise EffectUnknown("the line was cut")
        return {"receipt": "R-1", "bills": Append([what])}

    def find(self, what: str, *, key: str) -> dict[str, Any] | None:
        return None
