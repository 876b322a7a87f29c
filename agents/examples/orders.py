"""Reads the shop's orders from a CSV file, which may be replaced by another.

One line an item; the columns are those of `COLUMNS`, in any order, and others are ignored. An order's customer, card,
shipping and earlier refunds are on each of its lines and are taken from the first. `returned_on` is the day the item's
parcel came back. Text is UTF-8, amounts have a point and two decimals.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from pydantic import ValidationError

from .money import Currency, Money
from .nouns import Noun

BUNDLED = Path(__file__).with_name("refunds") / "orders.csv"
ORDER_COLUMNS = ("customer", "company", "email", "currency", "card", "paid_on", "shipping", "refunded")
ITEM_COLUMNS = ("item", "quantity", "price", "parcel", "returned_on")
COLUMNS = ("order", *ORDER_COLUMNS, *ITEM_COLUMNS)


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
    def goods(self) -> Decimal:
        return sum((item.total for item in self.items), Decimal(0))

    @property
    def paid(self) -> Decimal:
        return self.goods + self.shipping

    @property
    def left(self) -> Decimal:
        """Return what may still be refunded."""
        return max(self.paid - self.refunded - self.elsewhere, Decimal(0))


class OrdersRefused(ValueError):
    """The file of orders cannot be read. Says which line, and what is wrong with it."""


def path() -> Path:
    """Return the file that `HOLDPOINT_REFUNDS_ORDERS` names, else the one that comes along."""
    named = os.environ.get("HOLDPOINT_REFUNDS_ORDERS", "")
    return Path(named) if named else BUNDLED


def read(file: Path) -> dict[str, Order]:
    """Return all orders by their number. Raises OrdersRefused."""
    orders: dict[str, Order] = {}
    for line, row in _rows(file):
        _take(orders, file, line, row)
    return orders


def find(number: str) -> Order | None:
    """Return the order of that number, as the file says at this moment. Raises OrdersRefused.

    Only that order's lines have to make sense: what is wrong with another one is no matter of this.
    """
    file, found = path(), dict[str, Order]()
    for line, row in _rows(file):
        if number and row["order"] == number:
            _take(found, file, line, row)
    return found.get(number)


def numbers() -> frozenset[str]:
    """Return the numbers of all orders. Raises OrdersRefused."""
    return frozenset(row["order"] for _line, row in _rows(path()))


def _take(orders: dict[str, Order], file: Path, line: int, row: dict[str, str]) -> None:
    """Add one line of the file. Raises OrdersRefused."""
    try:
        item = Item.model_validate({"name": row["item"], **{name: row[name] for name in ITEM_COLUMNS[1:]}})
        if order := orders.get(row["order"]):
            order.items.append(item)
            return
        head = {name: row[name] for name in ORDER_COLUMNS}
        number = row["order"]
        orders[number] = Order.model_validate({"number": number, "charge": f"ch_{number}", "items": [item], **head})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise OrdersRefused(f"{file.name}, line {line}, {where}: {first['msg']}") from error


def _rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as source:
            reader = csv.DictReader(source, restval="")
            if missing := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
                raise OrdersRefused(f"{file.name} lacks the column {', '.join(missing)}")
            for row in reader:
                yield reader.line_num, {name: row[name].strip() for name in COLUMNS}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise OrdersRefused(f"{file} cannot be read: {error}") from error
