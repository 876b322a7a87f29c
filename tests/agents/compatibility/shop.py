"""An agent that asks, buys, looks at what was bought and asks again, in its versions."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Append, Card, EffectUnknown, effect, gate, step, upcast

from . import SENT

Body = dict[str, Any]


def bought(what: str, *, cut: bool) -> None:
    """Buy it from the shop of version 1."""
    SENT.append(f"buy {what}")
    if cut:
        raise EffectUnknown("the line was cut")


class Common(BaseModel):
    """`skip`: nobody is asked before it is bought. `cut`: the first answer of the provider does not arrive."""

    what: str
    skip: bool = False
    cut: bool = False
    seen: str = ""


class One(Agent):
    """Version 1."""

    name = "shop"
    version = "1"

    class State(Common):
        receipt: str = ""
        bills: list[str] = []

    @step
    def choose(self, skip: bool) -> Body:
        return {}

    @gate(allows=["buy"])
    def review(self, what: str, skip: bool) -> Card | None:
        return None if skip else Card(title="Buy?", actions=[Action(id="w", pointer="/what", effect="buy")])

    @effect(undo="sell", idempotent=True, retry=2, backoff=0)
    def buy(self, what: str, cut: bool, *, key: str) -> Body:
        bought(what, cut=cut and not SENT)
        return {"receipt": "R-1", "bills": Append([what])}

    def sell(self, receipt: str) -> None:
        SENT.append(f"sell {receipt!r}")

    @step
    def look(self, receipt: str) -> Body:
        return {"seen": receipt}

    @gate()
    def final(self, seen: str) -> Card:
        return Card(title="All well?")


class OneDenied(One):
    """Version 1 whose provider says at once that it never heard of a purchase."""

    @effect(undo="sell", readable="find", idempotent=True, retry=2, backoff=0)
    def buy(self, what: str, cut: bool, *, key: str) -> Body:
        bought(what, cut=cut and not SENT)
        return {"receipt": "R-1", "bills": Append([what])}

    def find(self, what: str, *, key: str) -> Body | None:
        return None


class OneRead(One):
    """Version 1 whose provider tells what became of a purchase, and takes no key twice."""

    @effect(undo="sell", readable="find", retry=2, backoff=0)
    def buy(self, what: str, cut: bool, *, key: str) -> Body:
        bought(what, cut=cut)
        return {"receipt": "R-1", "bills": Append([what])}

    def find(self, receipt: str, *, key: str) -> Body | None:
        raise EffectUnknown("it does not answer")


class TwoBare(Agent):
    """Version 2, in which the receipt is a slip and the bills are papers; nothing says so yet, or any more.

    The others have no text of their own: it is a part of the plan, which is to be the same.
    """

    name = "shop"
    version = "2"

    class State(Common):
        slip: str = ""
        papers: list[str] = []

    @step
    def choose(self, skip: bool) -> Body:
        return {}

    @gate(allows=["buy"])
    def review(self, what: str, skip: bool) -> Card | None:
        return None if skip else Card(title="Buy in 2?", actions=[Action(id="w", pointer="/what", effect="buy")])

    @effect(undo="sell", idempotent=True, retry=2, backoff=0)
    def buy(self, what: str, cut: bool, *, key: str) -> Body:
        SENT.append(f"buy {what} in 2")
        return {"slip": "R-2", "papers": Append([what])}

    def sell(self, slip: str) -> None:
        SENT.append(f"sell {slip!r} in 2")

    @step
    def look(self, slip: str) -> Body:
        return {"seen": slip}

    @gate()
    def final(self, seen: str) -> Card:
        return Card(title="All well in 2?")


class Two(TwoBare):  # version 2 with its upcaster
    @upcast("1")
    @classmethod
    def from_1(cls, state: Body) -> Body:
        state["slip"], state["papers"] = state.pop("receipt", ""), state.pop("bills", [])
        return state


class TwoLosing(TwoBare):  # version 2 with an upcaster that leaves the receipt behind
    @upcast("1")
    @classmethod
    def from_1(cls, state: Body) -> Body:
        return {name: state[name] for name in Common.model_fields}


class TwoRead(Two):  # version 2 whose provider tells what became of a purchase
    @effect(undo="sell", readable="find", retry=2, backoff=0)
    def buy(self, what: str, cut: bool, *, key: str) -> Body:
        return {"slip": "R-2", "papers": Append([what])}

    def find(self, slip: str, *, key: str) -> Body | None:
        return {"slip": f"{slip}, found"}
