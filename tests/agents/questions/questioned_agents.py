"""Agents that are asked questions at their gates."""

from __future__ import annotations

import time
from typing import Any

from pydantic import BaseModel, SecretStr

from agents import Action, Agent, Card, Drawing, ReviewerQuestion, effect, gate, step
from tests.factories.sample_agents import write_line

WAS = "".join(f"line {number}\n" for number in range(1, 21))
IS = WAS.replace("line 2\n", "LINE 2\n").replace("line 10\n", "")


class Offer(BaseModel):
    amount: int
    note: str = ""


class Silent(Agent):
    """Asks, and takes no questions. `ledger` names a file, `mode` says what `answer` does."""

    name = "silent"

    class State(BaseModel):
        ledger: str = ""
        mode: str = ""
        secret: SecretStr = SecretStr("")
        offer: Offer | None = None

    @step
    def propose(self, mode: str) -> dict[str, Any]:
        return {"offer": Offer(amount=7)}

    @gate(policy="payments", allows=["pay"], edits=["offer"], on_reject="propose")
    def review(self, offer: Offer) -> Card:
        return Card(title=f"Pay {offer.amount}", actions=[Action(id="pay", effect="pay", pointer="/offer")])

    @effect(irreversible=True)
    def pay(self, ledger: str, offer: Offer) -> dict[str, Any]:
        write_line(ledger, "paid", offer.amount)
        return {}


class Writer(Silent):
    """Replaces a long text."""

    name = "writer"

    @step
    def propose(self, mode: str) -> dict[str, Any]:
        return {"offer": Offer(amount=7, note=IS)}

    @gate(policy="payments", allows=["pay"], edits=["offer"], on_reject="propose")
    def review(self, offer: Offer) -> Card:
        drawn = Drawing(kind="diff", at="/note", was=WAS)
        return Card(title="Write", actions=[Action(id="pay", effect="pay", pointer="/offer", draws=[drawn])])


class Talker(Silent):
    """Answers from its state."""

    name = "talker"
    answers_within = 1.0

    def answer(self, question: ReviewerQuestion, ledger: str, mode: str, secret: SecretStr, offer: Offer) -> Any:
        write_line(ledger, "asked", question.text)
        if mode == "fails":
            raise ValueError(f"no idea, {secret.get_secret_value()}")
        if mode == "hangs":
            time.sleep(60)
        if mode == "pays":
            return self.pay(ledger, offer)
        if mode == "keeps":
            return self.once("x", len, "abc")
        if mode == "dumb":
            return 7
        now = question.card.actions[0].arguments["amount"]
        said = "; ".join(f"{each.by}: {each.text}" for each in question.thread)
        known = secret.get_secret_value()
        return f"You, {question.by}, asked “{question.text}”. {offer.amount}, now {now}. {known} [{said}] <b>bold</b>"
