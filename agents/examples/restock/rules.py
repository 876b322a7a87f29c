"""The rules of the restock example: articles that run low, quantities to order, prices, and texts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

from agents.examples.money import cents, shown
from approvals.english import counted

from .state import Feedback, Item, Line, Message, Pickup, Placed, Purchase, Repricing, Shelf, Why

WEEKS = 4  # that an order lasts
HIGH, MEDIUM = Decimal(2_500), Decimal(500)


def low(shelf: Shelf) -> list[Item]:
    """Return the articles that do not last until a delivery and a week more, the scarcest first."""
    found = [item for item in shelf.items if item.weekly and days(item) < shelf.lead_days + 7]
    return sorted(found, key=lambda item: (days(item), item.sku))


def days(item: Item) -> int:
    """Return how many days the stock lasts; 9,999 if none is sold."""
    return item.stock * 7 // item.weekly if item.weekly else 9_999


def purchase_of(shelf: Shelf, feedback: Sequence[Feedback]) -> Purchase:
    """Rules 1 and 4. A shelf on which nothing is low gets one of its first article."""
    wanted = low(shelf) or shelf.items[:1]
    lines = [
        Line(
            sku=item.sku,
            quantity=scaled(max(item.weekly * WEEKS - item.stock, 1), feedback),
            price=item.cost,
            needed_by=shelf.counted_at + timedelta(days=max(days(item), 1) if days(item) < 365 else shelf.lead_days),
            note=f"{counted(len(item.waiting), 'customer waits', 'customers wait')} for it." if item.waiting else None,
        )
        for item in wanted
    ]
    return Purchase(supplier=shelf.supplier, currency=shelf.currency, lines=lines, delivery=Pickup(dock=shelf.dock))


def scaled(quantity: int, feedback: Sequence[Feedback]) -> int:
    """Scale the quantity as reviewers said of the whole proposal."""
    for said in feedback:
        words = said.text.casefold()
        if said.action:
            continue  # of one action, and decided there
        quantity = max(quantity // 2, 1) if "half" in words else quantity * 2 if "double" in words else quantity
    return quantity


def repricing_of(shelf: Shelf, feedback: Sequence[Feedback]) -> Repricing:
    """Rules 2 and 4."""
    item = (low(shelf) or shelf.items)[0]
    keep = any("no price change" in said.text.casefold() for said in feedback if not said.action)
    price = item.price if keep else cents(item.price * Decimal("1.10"))
    return Repricing(sku=item.sku, currency=shelf.currency, old=item.price, price=price, why=Why.SCARCE)


def message_of(shelf: Shelf, purchase: Purchase) -> Message:
    """Rule 3."""
    item = (low(shelf) or shelf.items)[0]
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


def summary(shelf: Shelf, purchase: Purchase, repricing: Repricing, message: Message) -> str:
    """The agent's account of its proposal."""
    first = next((item for item in shelf.items if item.sku == repricing.sku), shelf.items[0])
    waiting = f", and {counted(len(message.to), 'customer waits', 'customers wait')} for it" if message.to else ""
    return (
        f"{first.name} lasts {days(first)} more days{waiting}; {shelf.supplier} takes {shelf.lead_days}. "
        f"I would order {len(purchase.lines)} articles for {shown(purchase.total, purchase.currency)}, ask "
        f"{shown(repricing.price, repricing.currency)} for it until then, and tell those who wait."
    )


def risk(purchase: Purchase) -> str:
    return "high" if purchase.total > HIGH else "medium" if purchase.total > MEDIUM else "low"


def reasons(purchase: Purchase, message: Message) -> list[str]:
    """Why the risk is what it is."""
    found = [f"The order is for more than {shown(HIGH, purchase.currency)}"] if purchase.total > HIGH else []
    return [*found, f"{counted(len(message.to), 'person reads', 'people read')} the message"]


def report(
    purchase: Purchase, ordered: Placed | None, repriced: Placed | None, told: str, feedback: Sequence[Feedback]
) -> str:
    """What was done and what was not, in a few lines."""
    why = {said.action: said.text for said in feedback if said.action}
    lines = [
        f"Ordered from {purchase.supplier} as {ordered.id}." if ordered else f"Nothing ordered: {_why(why, 'order')}",
        f"The price is changed as {repriced.id}." if repriced else f"The price stays: {_why(why, 'price')}",
        "The customers are told." if told else f"The customers are not told: {_why(why, 'message')}",
    ]
    return "\n".join(lines)


def _why(said: dict[str, str], action: str) -> str:
    return said.get(action, "no reason was given.")
