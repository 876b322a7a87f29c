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

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, Field, ValidationInfo, field_validator

from agents import Action, Agent, Card, effect, gate, step, undo, upcast
from agents.examples.money import Currency, Money
from agents.examples.money import round_to_cents as cents
from agents.examples.money import show_money as shown
from agents.examples.nouns import Noun, read_inputs
from agents.examples.sending import ask_provider as ask
from agents.examples.sending import fix_values as fixed
from agents.examples.sending import send_mail as deliver
from approvals.english import count_of as counted

Sku = Annotated[str, Field(pattern=r"^[A-Z]{2,4}-[0-9]{2,4}$")]
Mail = Annotated[str, Field(max_length=254, pattern=r"^[^\s@]+@[^\s@]+$")]


class Item(Noun):
    """One thing that the shop sells, as it stands on the shelf."""

    sku: Sku
    name: str = Field(max_length=100)
    stock: int = Field(ge=0)
    weekly: int = Field(ge=0)  # sold in a week
    cost: Money  # what the supplier asks for one
    price: Money  # what a customer pays for one
    waiting: list[Mail] = Field(default_factory=list)  # customers who were promised one


class Shelf(Noun):
    """A shop's stock, with where it buys."""

    shop: str = Field(max_length=100)
    supplier: str = Field(max_length=100)
    currency: Currency
    counted_at: AwareDatetime
    lead_days: int = Field(ge=1, le=60)  # from an order to its delivery
    dock: str = Field(max_length=100)
    items: list[Item] = Field(min_length=1, max_length=200)


class Line(Noun):
    """So many of one thing."""

    sku: Sku = Field(title="Article")
    quantity: int = Field(title="Quantity", ge=1, le=10_000)
    price: Money = Field(title="Price each")
    needed_by: AwareDatetime = Field(title="Needed by")
    note: str | None = Field(default=None, title="Note to the supplier", max_length=500)

    @property
    def total(self) -> Decimal:
        return cents(self.price * self.quantity)


class Pickup(Noun):
    """The shop's own van fetches it."""

    kind: Literal["pickup"] = "pickup"
    dock: str = Field(title="Dock", max_length=100)


class Address(Noun):
    street: str = Field(title="Street", max_length=200)
    postcode: str = Field(title="Postcode", max_length=12)
    city: str = Field(title="City", max_length=100)


class Courier(Noun):
    """A courier brings it."""

    kind: Literal["courier"] = "courier"
    address: Address = Field(title="Address")
    insured: bool = Field(default=True, title="Insured")


class Purchase(Noun):
    """An order to the supplier."""

    supplier: str = Field(title="Supplier", max_length=100)
    currency: Currency = Field(title="Currency")
    lines: list[Line] = Field(title="Lines", min_length=1, max_length=50)
    delivery: Annotated[Pickup | Courier, Field(discriminator="kind")] = Field(title="Delivery")

    @property
    def total(self) -> Decimal:
        return sum((line.total for line in self.lines), Decimal(0))


class Why(StrEnum):
    SCARCE = "scarce"
    COST = "cost went up"
    CLEARANCE = "clearance"


class Repricing(Noun):
    """Another price in the shop."""

    sku: Sku = Field(title="Article")
    currency: Currency = Field(title="Currency")
    old: Money = Field(title="Price now")
    price: Money = Field(title="New price")
    why: Why = Field(title="Reason")


class Message(Noun):
    """What the customers who wait are told."""

    to: list[Mail] = Field(title="Goes to", max_length=200)
    subject: str = Field(title="Subject", max_length=200, pattern=r"^[^\r\n]*$")
    text: str = Field(title="Text", max_length=20_000, json_schema_extra={"format": "multiline"})


class Feedback(BaseModel):
    """A reviewer's words; those about one action name it, and the place in its arguments. The runner fills it in."""

    text: str
    by: str
    at: str
    gate: int
    action: str = ""
    pointer: str = ""


class Decision(BaseModel):
    """How the last gate ended, action by action. The runner fills it in, and may know more."""

    gate: str
    kind: str
    by: str
    changes: list[dict[str, Any]]
    verdicts: dict[str, Any] = Field(default_factory=dict)


class Placed(Noun):
    """What the supplier or the till made of it."""

    id: str
    status: str


WEEKS = 4  # that an order lasts
HIGH, MEDIUM = Decimal(2_500), Decimal(500)


def find_low(shelf: Shelf) -> list[Item]:
    """Return the articles that do not last until a delivery and a week more, the scarcest first."""
    found = [item for item in shelf.items if item.weekly and count_days(item) < shelf.lead_days + 7]
    return sorted(found, key=lambda item: (count_days(item), item.sku))


def count_days(item: Item) -> int:
    """Return how many days the stock lasts; 9,999 if none is sold."""
    return item.stock * 7 // item.weekly if item.weekly else 9_999


def plan_purchase(shelf: Shelf, feedback: Sequence[Feedback]) -> Purchase:
    """Rules 1 and 4. A shelf on which nothing is low gets one of its first article."""
    wanted = find_low(shelf) or shelf.items[:1]
    lines = [
        Line(
            sku=item.sku,
            quantity=scale_quantity(max(item.weekly * WEEKS - item.stock, 1), feedback),
            price=item.cost,
            needed_by=shelf.counted_at
            + timedelta(days=max(count_days(item), 1) if count_days(item) < 365 else shelf.lead_days),
            note=f"{counted(len(item.waiting), 'customer waits', 'customers wait')} for it." if item.waiting else None,
        )
        for item in wanted
    ]
    return Purchase(supplier=shelf.supplier, currency=shelf.currency, lines=lines, delivery=Pickup(dock=shelf.dock))


def scale_quantity(quantity: int, feedback: Sequence[Feedback]) -> int:
    """Scale the quantity as reviewers said of the whole proposal."""
    for comment in feedback:
        words = comment.text.casefold()
        if comment.action:
            continue  # of one action, and decided there
        quantity = max(quantity // 2, 1) if "half" in words else quantity * 2 if "double" in words else quantity
    return quantity


def plan_repricing(shelf: Shelf, feedback: Sequence[Feedback]) -> Repricing:
    """Rules 2 and 4."""
    item = (find_low(shelf) or shelf.items)[0]
    keep = any("no price change" in comment.text.casefold() for comment in feedback if not comment.action)
    price = item.price if keep else cents(item.price * Decimal("1.10"))
    return Repricing(sku=item.sku, currency=shelf.currency, old=item.price, price=price, why=Why.SCARCE)


def write_message(shelf: Shelf, purchase: Purchase) -> Message:
    """Rule 3."""
    item = (find_low(shelf) or shelf.items)[0]
    comes = shelf.counted_at + timedelta(days=shelf.lead_days)
    text = (
        f"Good day,\n\nyou are waiting for {item.name}. A delivery is on its way and should be here on "
        f"{comes:%A, %d %B}. One is put aside for you; you need not do anything.\n\n"
        f"With thanks for your patience\n{shelf.shop}"
    )
    return Message(to=item.waiting, subject=f"{item.name}: it comes on {comes:%d %B}", text=text)


def check_lines(purchase: Purchase, shelf: Shelf) -> None:
    """Raises ValueError for an order of what the shop does not sell, or of one thing twice."""
    known = {item.sku for item in shelf.items}
    ordered = [line.sku for line in purchase.lines]
    strange = sorted(set(ordered) - known)
    if strange:
        raise ValueError(f"the shop does not sell {', '.join(strange)}")
    if len(set(ordered)) < len(ordered):
        raise ValueError("an article is in the order twice; put its lines together")


def check_price(repricing: Repricing, shelf: Shelf) -> None:
    """Raises ValueError where an article is said to cost what it does not."""
    prices = {item.sku: item.price for item in shelf.items}
    if prices.get(repricing.sku) != repricing.old or repricing.currency != shelf.currency:
        raise ValueError(f"{repricing.sku} does not cost {shown(repricing.old, repricing.currency)} in the shop")


def summarise(shelf: Shelf, purchase: Purchase, repricing: Repricing, message: Message) -> str:
    """The agent's account of its proposal."""
    first = next((item for item in shelf.items if item.sku == repricing.sku), shelf.items[0])
    waiting = f", and {counted(len(message.to), 'customer waits', 'customers wait')} for it" if message.to else ""
    return (
        f"{first.name} lasts {count_days(first)} more days{waiting}; {shelf.supplier} takes {shelf.lead_days}. "
        f"I would order {len(purchase.lines)} articles for {shown(purchase.total, purchase.currency)}, ask "
        f"{shown(repricing.price, repricing.currency)} for it until then, and tell those who wait."
    )


def rate_risk(purchase: Purchase) -> str:
    return "high" if purchase.total > HIGH else "medium" if purchase.total > MEDIUM else "low"


def list_reasons(purchase: Purchase, message: Message) -> list[str]:
    """Why the risk is what it is."""
    found = [f"The order is for more than {shown(HIGH, purchase.currency)}"] if purchase.total > HIGH else []
    return [*found, f"{counted(len(message.to), 'person reads', 'people read')} the message"]


def write_report(
    purchase: Purchase, ordered: Placed | None, repriced: Placed | None, sent: str, feedback: Sequence[Feedback]
) -> str:
    """What was done and what was not, in a few lines."""
    why = {comment.action: comment.text for comment in feedback if comment.action}
    lines = [
        f"Ordered from {purchase.supplier} as {ordered.id}." if ordered else f"Nothing ordered: {_why(why, 'order')}",
        f"The price is changed as {repriced.id}." if repriced else f"The price stays: {_why(why, 'price')}",
        "The customers are told." if sent else f"The customers are not told: {_why(why, 'message')}",
    ]
    return "\n".join(lines)


def _why(reasons: dict[str, str], action: str) -> str:
    return reasons.get(action, "no reason was given.")


class Restock(Agent):
    """Keep a shelf filled: count, propose, ask, order, reprice, tell the customers who wait."""

    name = "restock"
    version = "3"
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
        sent: str = Field(default="", title="What the customers were told", max_length=20_000)
        summary: str = ""

        @field_validator("purchase")
        @classmethod
        def is_of_this_shelf(cls, purchase: Purchase | None, info: ValidationInfo) -> Purchase | None:
            """Whoever edits the order buys what the shop sells, each once."""
            shelf = info.data.get("shelf")
            if purchase and shelf:
                check_lines(purchase, shelf)
            return purchase

        @field_validator("repricing")
        @classmethod
        def says_the_price_as_it_is(cls, repricing: Repricing | None, info: ValidationInfo) -> Repricing | None:
            """Whoever edits the new price leaves the old one, and the article, as they are."""
            shelf = info.data.get("shelf")
            if repricing and shelf:
                check_price(repricing, shelf)
            return repricing

    @upcast("2")
    @classmethod
    def from_2(cls, state: dict[str, Any]) -> dict[str, Any]:
        """What the customers were told had another name."""
        state["sent"] = state.pop("told", "")
        return state

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return cls.from_2(state)

    @classmethod
    def title(cls, state: State) -> str:
        """Say which shop it is, and how much of it is low."""
        low = len(find_low(state.shelf))
        return f"{state.shelf.shop}: {low} of {len(state.shelf.items)} run low"

    @classmethod
    def result(cls, state: State) -> str:
        """Say what was done, and what was not and why."""
        return state.summary

    @classmethod
    def inputs_from(cls, path: Path) -> list[dict[str, Any]]:
        """One input for each .json file of a folder, by name."""
        return read_inputs(path)

    @step(
        title="Propose what to order",
        uses=[plan_purchase, plan_repricing, write_message],
    )
    def propose(self, shelf: Shelf, feedback: list[Feedback]) -> dict[str, Any]:
        """Work out an order, a price and a message, heeding what reviewers said."""
        purchase = plan_purchase(shelf, feedback)
        self.note(f"{len(purchase.lines)} articles for {shown(purchase.total, shelf.currency)}.")
        return {
            "purchase": purchase,
            "repricing": plan_repricing(shelf, feedback),
            "message": write_message(shelf, purchase),
        }

    @gate(
        title="Review the restock",
        policy="restock",
        allows=["order", "reprice", "notify"],
        edits=["purchase", "repricing", "message"],
        on_reject="propose",
        uses=[summarise],
    )
    def review(self, shelf: Shelf, purchase: Purchase, repricing: Repricing, message: Message) -> Card:
        """Ask about all three at once; each gets its own verdict."""
        total = shown(purchase.total, purchase.currency)
        same = {"sku": repricing.sku, "currency": repricing.currency, "old": f"{repricing.old:.2f}"}
        return Card(
            title=f"Restock {shelf.shop} for {total}",
            summary=summarise(shelf, purchase, repricing, message),
            for_whom=shelf.shop,
            amount=total,
            resource=f"{len(purchase.lines)} articles from {purchase.supplier}",
            risk=rate_risk(purchase),
            reasons=list_reasons(purchase, message),
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
        placed = ask("/orders", purchase.model_dump(mode="json"), Placed, key=key)
        self.note(f"{shown(purchase.total, purchase.currency)} ordered as {placed.id}.")
        return {"ordered": placed}

    @undo(idempotent=True)
    def cancel_order(self, ordered: Placed | None) -> None:
        """Take the order back; as often as it is asked."""
        if ordered:
            ask(f"/orders/{ordered.id}/withdraw", {}, Placed)

    @effect(title="Change the price", undo="restore_price", idempotent=True)
    def reprice(self, repricing: Repricing, *, key: str) -> dict[str, Any]:
        """Put the new price into the till."""
        return {"repriced": ask("/prices", repricing.model_dump(mode="json"), Placed, key=key)}

    @undo(idempotent=True)
    def restore_price(self, repriced: Placed | None) -> None:
        """Put the old price back; as often as it is asked."""
        if repriced:
            ask(f"/prices/{repriced.id}/withdraw", {}, Placed)

    @effect(title="Tell the customers", irreversible=True, responds="sent")
    def notify(self, message: Message, *, key: str) -> dict[str, Any]:
        """Write to the customers who wait."""
        if message.to:  # one mail to all of them, none of whom sees the others
            deliver(message.subject, message.text, key=key, bcc=message.to)
        return {"sent": message.text}

    @step(title="Write the report", uses=[write_report])
    def report(
        self, purchase: Purchase, ordered: Placed | None, repriced: Placed | None, sent: str, feedback: list[Feedback]
    ) -> dict[str, Any]:
        """Say what was done, and what was not and why."""
        return {"summary": write_report(purchase, ordered, repriced, sent, feedback)}
