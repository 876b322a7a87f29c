"""The data types of a refund request, as they are saved in a run's state."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from agents.examples.money import Currency, Money
from agents.examples.nouns import Noun

MAX_MAIL = 2_000_000  # bytes that are read of a mail
Ruling = Literal["", "pay", "refuse"]  # what a person answered where the mail raised doubts


class Reason(StrEnum):
    RETURNED = "returned"
    NEVER_ARRIVED = "never arrived"
    FAULTY = "faulty"
    GOODWILL = "goodwill"


class Mail(Noun):
    """A mail as it came: `raw` holds one character for each byte (ISO 8859-1), so that nothing of it is lost."""

    name: str = Field(max_length=200)
    raw: str = Field(max_length=MAX_MAIL + 1)

    @property
    def octets(self) -> bytes:
        """Return the mail's bytes. Text that somebody typed, and that is no such bytes, is taken as UTF-8."""
        return self.raw.encode("utf-8" if max(self.raw, default="") > "\xff" else "iso-8859-1")

    @classmethod
    def read(cls, file: Path) -> Mail:
        """Take a mail from its file, as much of it as is ever read. Raises OSError."""
        with file.open("rb") as source:
            return cls(name=file.name[:200], raw=source.read(MAX_MAIL + 1).decode("iso-8859-1"))


class Ticket(Noun):
    """What the mail says, in the customer's words, and what could not be made out of it."""

    from_address: str = ""
    from_name: str = ""
    reply_to: str = ""
    subject: str = ""
    sent: str = ""
    text: str = ""
    order_number: str | None = None  # where the mail names one order, and no other
    reason: Reason = Reason.GOODWILL
    wants: Money | None = None  # the amount the customer names
    attachments: list[str] = []
    problems: list[str] = []
    numbers: list[str] = []  # all order numbers that it names
    lookalikes: list[str] = []  # what only looks like an order number
    wants_currency: str = ""
    hidden: str = ""  # words that may be out of sight of whoever reads the mail


class Facts(Noun):
    """What the agent goes by. Read from the mail; a person fills in what is missing."""

    order_number: str = Field(pattern=r"^[0-9]{0,12}$", title="Order number", description="Digits only.")
    name: str = Field(max_length=100, title="Customer's name")
    address: str = Field(max_length=254, title="Customer's e-mail address", description="The reply goes there.")
    reason: Reason = Field(title="Reason")


class Refund(Noun):
    amount: Money = Field(title="Amount", description="0.00 pays nothing and only sends the reply.")
    currency: Currency = Field(title="Currency")
    reason: Reason = Field(title="Reason")
    charge: str = Field(title="Payment", description="The payment that is refunded.")
    card: str = Field(title="Refund to card ending", description="The card that paid the order.")


class Reply(Noun):
    to: str = Field(title="Goes to", max_length=254)
    subject: str = Field(title="Subject", max_length=200, pattern=r"^[^\r\n]*$")
    text: str = Field(
        title="Text",
        max_length=20_000,
        description="A statement of the refund (order, amount, card) is put below it when it is sent.",
        json_schema_extra={"format": "multiline"},
    )


class Proposal(Noun):
    refund: Refund
    reply: Reply


class Feedback(BaseModel):
    """What a reviewer wrote who sent the run back. The runner fills it in, and may know more."""

    text: str
    by: str
    at: str
    gate: int


class Payment(Noun):
    id: str
    amount: Money
    currency: Currency
    status: str
