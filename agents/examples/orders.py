"""Reads the shop's orders from a CSV file, which may be replaced by another.

One line an item. What is about the order stands on each of its lines and is taken from the first. `returned_on` is the
day the item's parcel came back. Text is UTF-8, amounts have a point and two decimals.
"""

from __future__ import annotations

import csv
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agents import StepFailed

from .money import Currency, Money
from .nouns import Noun

BUNDLED = Path(__file__).with_name("refunds") / "orders.csv"


class Item(Noun):
    name: str
    quantity: int
    price: Money  # of one
    parcel: str
    returned_on: str  # ISO date, empty while it has not come back

    @property
    def total(self) -> Decimal:
        return self.price * self.quantity


class Order(Noun):
    number: str
    customer: str
    company: str
    email: str
    currency: Currency
    card: str  # the last four digits
    charge: str  # the payment's id at the payment provider
    paid_on: str
    shipping: Money
    refunded: Money  # before this request
    elsewhere: Money = Decimal(0)  # what others gave back at the provider
    items: list[Item]

    @property
    def paid(self) -> Decimal:
        return sum((item.total for item in self.items), self.shipping)

    @property
    def refundable(self) -> Decimal:
        """Return what is left of the payment."""
        return max(self.paid - self.refunded - self.elsewhere, Decimal(0))


class OrdersRefused(StepFailed):
    """The file of orders cannot be read. Says which line, and what is wrong with it."""


def find(number: str) -> Order | None:
    """Return the order of that number, as the file says at this moment: of its lines alone. Raises OrdersRefused."""
    order: Order | None = None
    for place, row in _read_rows():
        if number and row.get("order") == number:
            named = row | {"number": number, "charge": f"ch_{number}", "name": row.get("item"), "items": []}
            try:
                order = order or Order.model_validate(_pick(named, Order))
                order.items.append(Item.model_validate(_pick(named, Item)))
            except ValidationError as error:
                fault = error.errors()[0]
                raise OrdersRefused(f"{place}, {fault['loc'][0]}: {fault['msg']}") from error
    return order


def numbers() -> frozenset[str]:
    """Return the numbers of all orders. Raises OrdersRefused."""
    return frozenset(row.get("order", "") for _, row in _read_rows())


def _pick(row: dict[str, Any], noun: type[Noun]) -> dict[str, Any]:
    return {name: row[name] for name in noun.model_fields if name in row}


def _read_rows() -> list[tuple[str, dict[str, Any]]]:
    """Return (place, row) of each line of the file that `HOLDPOINT_REFUNDS_ORDERS` names, else of the bundled one."""
    file = Path(os.environ.get("HOLDPOINT_REFUNDS_ORDERS") or BUNDLED)
    try:
        with file.open(encoding="utf-8-sig", newline="") as source:
            rows = csv.DictReader(source, restkey="", restval="", skipinitialspace=True)
            return [(f"{file.name}, line {rows.line_num}", dict(row)) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise OrdersRefused(f"{file} cannot be read: {error}") from error
