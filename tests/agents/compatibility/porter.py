"""An agent that finds an order, drafts a reply, asks, and sends it, in its versions.

From version 1 to 2 the step `propose` becomes `draft` and the field `text` becomes `reply`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate, step, upcast

from . import SENT

Body = dict[str, Any]


class One(Agent):
    """Version 1."""

    name = "porter"
    version = "1"

    class State(BaseModel):
        order: str
        found: str = ""
        text: str = ""
        feedback: list[Body] = []
        sent: str = ""

    @step
    def find(self, order: str) -> Body:
        return {"found": f"order {order}"}

    @step
    def propose(self, found: str, feedback: list[Body]) -> Body:
        return {"text": " ".join(["About", found, *(each["text"] for each in feedback)])}

    @gate(allows=["send"], edits=["text"], on_reject="propose")
    def review(self, text: str) -> Card:
        return Card(title="Send the reply?", actions=[Action(id="text", title="Reply", pointer="/text", effect="send")])

    @effect(undo="recall")
    def send(self, text: str) -> Body:
        SENT.append(f"1: {text}")
        return {"sent": text}

    def recall(self, sent: str) -> None:
        SENT.remove(f"1: {sent}")


class OneBeside(One):
    """Version 1 that goes on while people decide."""

    @gate(allows=["send"], edits=["text"], on_reject="propose", waits=False)
    def review(self, text: str) -> Card:
        return One.review(self, text)


class TwoBare(Agent):
    """Version 2 as it was first written: a step and a field have other names, and nothing says so."""

    name = "porter"
    version = "2"

    class State(BaseModel):
        order: str
        found: str = ""
        reply: str = ""
        feedback: list[Body] = []
        sent: str = ""

    @step
    def find(self, order: str) -> Body:
        return {"found": f"order {order}"}

    @step
    def draft(self, found: str, feedback: list[Body]) -> Body:
        return {"reply": " ".join(["Dear customer, about", found, *(each["text"] for each in feedback)])}

    @gate(allows=["send"], edits=["reply"], on_reject="draft")
    def review(self, reply: str) -> Card:
        return Card(title="Send it?", actions=[Action(id="reply", title="Reply", pointer="/reply", effect="send")])

    @effect(undo="recall")
    def send(self, reply: str) -> Body:
        SENT.append(f"2: {reply}")
        return {"sent": reply}

    def recall(self, sent: str) -> None:
        SENT.remove(f"2: {sent}")


def after(
    base: type[Agent], since: str, by: Callable[[Body], Body], steps: dict[str, str] | None = None, **attributes: str
) -> Any:
    """A version of the same plan with an upcaster; `steps` is what the steps are called now."""

    def method(cls: type[Agent], state: Body) -> Body:
        return by(state)

    return type("After", (base,), {f"from_{since[0]}": classmethod(upcast(since, steps=steps)(method)), **attributes})


def reply(state: Body) -> Body:
    """What version 2 calls the text."""
    return {"reply": state.pop("text", ""), **state}


DRAFT = {"propose": "draft"}
Two = after(TwoBare, "1", reply, DRAFT)
TwoUnnamed = after(TwoBare, "1", reply)
TwoRaising = after(TwoBare, "1", lambda state: {"reply": state["answer"]}, DRAFT)
TwoForgetful = after(TwoBare, "1", lambda state: {**state, "reply": state["text"]}, DRAFT)
# The same steps and the same state.
TwoAlike = after(One, "1", lambda state: state, version="2.2")
ThreeAlike = after(TwoAlike, "2.2", lambda state: state, version="3.2")


class TwoRenaming(Agent):
    """A version in which the effect has another name, by which no row of the ledger is known."""

    name = "porter"
    version = "2.1"
    State: ClassVar[Any] = One.State

    @gate(allows=["mail"])
    def review(self, text: str) -> Card:
        return Card(title="Mail the reply?", actions=[Action(id="text", title="Reply", pointer="/text", effect="mail")])

    @effect(irreversible=True)
    def mail(self, text: str) -> Body:
        return {"sent": text}

    @upcast("1", steps={"send": "mail"})
    @classmethod
    def from_1(cls, state: Body) -> Body:
        return state
