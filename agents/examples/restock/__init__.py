"""The restock agent: it looks at a shop's shelf and proposes an order, a price and a message, all in one gate.

It uses no model, only these rules:

1. An article that will run out before the supplier's delivery time plus a week is ordered: enough for four weeks.
2. The price of the one that runs out first rises by a tenth until the delivery.
3. The customers who wait for it are told when it comes.
4. The shop's own van fetches the order. A reviewer's feedback changes the proposal: "half" halves the
   quantities, "double" doubles them, "no price change" keeps the price.

A reviewer decides on each of the three actions by itself. A refused action is skipped; a reviewer who has told the
customers in another way answers in the message's place, and the answer is kept as the message. Orders and prices go to
`SANDBOX_URL`, mail goes through Django.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationInfo, field_validator

from agents import Action, Agent, Card, effect, gate, step, undo
from agents.examples import inputs
from agents.examples.money import shown
from agents.examples.nouns import Noun
from agents.examples.sending import fixed

from . import rules as restock_rules
from . import trade as restock_trade
from .state import Decision, Feedback, Message, Placed, Purchase, Repricing, Shelf


class Restock(Agent):
    """Keep a shelf filled: count, propose, ask, order, reprice, tell the customers who wait."""

    name = "restock"
    version = "1"
    team = "Support"

    class State(Noun):
        """What is saved after every step. Later fields are checked against earlier ones."""

        shelf: Shelf
        purchase: Purchase | None = None
        repricing: Repricing | None = None
        message: Message | None = None
        feedback: list[Feedback] = Field(default_factory=list)
        decision: Decision | None = None
        ordered: Placed | None = None
        repriced: Placed | None = None
        told: str = Field(default="", title="What the customers were told", max_length=20_000)
        summary: str = ""

        @field_validator("purchase")
        @classmethod
        def is_of_this_shelf(cls, purchase: Purchase | None, info: ValidationInfo) -> Purchase | None:
            """Whoever edits the order buys what the shop sells, each once."""
            shelf = info.data.get("shelf")
            if purchase and shelf:
                restock_rules.check_lines(purchase, shelf)
            return purchase

        @field_validator("repricing")
        @classmethod
        def says_the_price_as_it_is(cls, repricing: Repricing | None, info: ValidationInfo) -> Repricing | None:
            """Whoever edits the new price leaves the old one, and the article, as they are."""
            shelf = info.data.get("shelf")
            if repricing and shelf:
                restock_rules.check_price(repricing, shelf)
            return repricing

    @classmethod
    def title(cls, state: State) -> str:
        """Say which shop it is, and how much of it is low."""
        low = len(restock_rules.low(state.shelf))
        return f"{state.shelf.shop}: {low} of {len(state.shelf.items)} run low"

    @classmethod
    def result(cls, state: State) -> str:
        """Say what was done, and what was not and why."""
        return state.summary

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One input for each .json file of a folder, by name."""
        return inputs.in_folder(path)

    @step(
        title="Propose what to order",
        uses=[restock_rules.purchase_of, restock_rules.repricing_of, restock_rules.message_of],
    )
    def propose(self, shelf: Shelf, feedback: list[Feedback]) -> dict[str, Any]:
        """Work out an order, a price and a message, heeding what reviewers said."""
        purchase = restock_rules.purchase_of(shelf, feedback)
        self.note(f"{len(purchase.lines)} articles for {shown(purchase.total, shelf.currency)}.")
        return {
            "purchase": purchase,
            "repricing": restock_rules.repricing_of(shelf, feedback),
            "message": restock_rules.message_of(shelf, purchase),
        }

    @gate(
        title="Review the restock",
        policy="restock",
        allows=["order", "reprice", "notify"],
        edits=["purchase", "repricing", "message"],
        on_reject="propose",
        uses=[restock_rules.summary],
    )
    def review(self, shelf: Shelf, purchase: Purchase, repricing: Repricing, message: Message) -> Card:
        """Ask about all three at once; each gets its own verdict."""
        total = shown(purchase.total, purchase.currency)
        same = {"sku": repricing.sku, "currency": repricing.currency, "old": f"{repricing.old:.2f}"}
        return Card(
            title=f"Restock {shelf.shop} for {total}",
            summary=restock_rules.summary(shelf, purchase, repricing, message),
            for_whom=shelf.shop,
            amount=total,
            resource=f"{len(purchase.lines)} articles from {purchase.supplier}",
            risk=restock_rules.risk(purchase),
            reasons=restock_rules.reasons(purchase, message),
            actions=[
                Action(id="order", title="Order from the supplier", tool="supplier.order", effect="order",
                       pointer="/purchase", pinned=["/supplier"]),
                Action(id="price", title="Change a price", tool="till.reprice", effect="reprice",
                       pointer="/repricing", pinned=["/price"],
                       schema=fixed(Repricing, **same)),
                Action(id="message", title="Write to the customers who wait", tool="mail.send", effect="notify",
                       pointer="/message", pinned=["/to"], verdicts=["approve", "edit", "reject", "respond"]),
            ],
        )  # fmt: skip

    @effect(title="Place the order", undo="cancel_order", idempotent=True)
    def order(self, purchase: Purchase, *, key: str) -> dict[str, Any]:
        """Send the order to the supplier."""
        placed = restock_trade.order(purchase, key)
        self.note(f"{shown(purchase.total, purchase.currency)} ordered as {placed.id}.")
        return {"ordered": placed}

    @undo(idempotent=True)
    def cancel_order(self, ordered: Placed | None) -> None:
        """Take the order back; as often as it is asked."""
        if ordered:
            restock_trade.withdraw("orders", ordered.id)

    @effect(title="Change the price", undo="restore_price", idempotent=True)
    def reprice(self, repricing: Repricing, *, key: str) -> dict[str, Any]:
        """Put the new price into the till."""
        return {"repriced": restock_trade.reprice(repricing, key)}

    @undo(idempotent=True)
    def restore_price(self, repriced: Placed | None) -> None:
        """Put the old price back; as often as it is asked."""
        if repriced:
            restock_trade.withdraw("prices", repriced.id)

    @effect(title="Tell the customers", irreversible=True, responds="told")
    def notify(self, message: Message, *, key: str) -> dict[str, Any]:
        """Write to the customers who wait."""
        restock_trade.mail(message, key)
        return {"told": message.text}

    @step(title="Write the report", uses=[restock_rules.report])
    def report(
        self, purchase: Purchase, ordered: Placed | None, repriced: Placed | None, told: str, feedback: list[Feedback]
    ) -> dict[str, Any]:
        """Say what was done, and what was not and why."""
        return {"summary": restock_rules.report(purchase, ordered, repriced, told, feedback)}
