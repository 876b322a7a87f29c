"""The data types of restocking a shop, as they are saved in a run's state."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, Field

from agents.examples.money import Currency, Money, cents
from agents.examples.nouns import Noun

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
