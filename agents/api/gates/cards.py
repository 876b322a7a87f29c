"""What a gate asks, as a body says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from ninja import Schema
from pydantic import AfterValidator, ConfigDict, Field

from agents.api.runs.moves import Order
from approvals.cards.action import VERDICTS
from approvals.cards.card import IDENTIFIER, RISKS, Card

WIRE: dict[str, Any] = {"to": "ACME Ltd", "iban": "DE02120300000000202051", "amount": "120.00"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "iban": {"type": "string"}, "amount": {"type": "string"}},
    "required": ["to", "iban", "amount"],
}


def _one_of(names: Sequence[str]) -> AfterValidator:
    def known(value: str) -> str:
        if value not in names:
            raise ValueError(f"{value[:40]!r} is none of {', '.join(names)}")
        return value

    return AfterValidator(known)


def _identifier(name: str) -> str:
    if name and not IDENTIFIER.fullmatch(name):
        raise ValueError(f"{name[:40]!r} is not an identifier of plain letters, digits, . : _ -")
    return name


Identifier = Annotated[str, AfterValidator(_identifier)]


class Words(Order):
    """What people read of a gate. The agent wrote it: data, never markup."""

    title: str = Field(
        description="What is asked, in a line.", min_length=1, max_length=500, examples=["Wire 120.00 EUR"]
    )
    summary: str = Field("", description="In the agent's own words.", max_length=20_000, examples=["Invoice 7 is due."])
    for_whom: str = Field("", description="Whom it is about.", max_length=500, examples=["ACME Ltd"])
    amount: str = Field("", description="How much, as people write it.", max_length=200, examples=["120.00 EUR"])
    resource: str = Field("", description="What it is done to.", max_length=500, examples=["Invoice 7"])
    risk: Annotated[str, _one_of(RISKS)] = Field(
        "medium", description="How much is at stake.", examples=["medium"], json_schema_extra={"enum": list(RISKS)}
    )
    reasons: list[str] = Field(
        [], description="Why the risk is what it is.", max_length=50, examples=[["The first payment to this account"]]
    )


class Quoted(Schema):
    """Somebody's words in the state, shown as theirs."""

    model_config = ConfigDict(extra="forbid")
    label: str = Field(description="Who said it.", max_length=200, examples=["Ellery, Marit"])
    pointer: str = Field(description="Where in the state the text is.", max_length=1000, examples=["/mail/text"])
    role: str = Field("", description="What they are here, and how it came.", max_length=200, examples=["by mail"])


class AskedAction(Order):
    """One action of a gate."""

    id: Identifier = Field(description="Its id, once in the gate.", min_length=1, max_length=100, examples=["wire"])
    title: str = Field("", description="In words; else the tool.", max_length=500, examples=["Wire money"])
    tool: Identifier = Field("", description="The tool's name; else the id.", max_length=100, examples=["wire"])
    pinned: list[str] = Field(
        [],
        description="JSON Pointers into the arguments that are shown first and never folded.",
        max_length=50,
        examples=[["/amount", "/iban"]],
    )
    missing: list[str] = Field(
        [],
        description="JSON Pointers into the arguments that a person has to fill in or change; until then an approval "
        "is refused (422, with the pointer).",
        max_length=50,
        examples=[[]],
    )
    verdicts: list[Annotated[str, _one_of(VERDICTS)]] = Field(
        [],
        description="Those that it takes; empty: approve, edit where it may be edited, and reject.",
        max_length=len(VERDICTS),
        examples=[["approve", "edit", "reject"]],
        json_schema_extra={"items": {"type": "string", "enum": list(VERDICTS)}},
    )
    arguments_schema: dict[str, Any] = Field(
        {},
        alias="schema",
        description="The JSON Schema of its arguments, from which the form is drawn. They have to hold under it.",
        examples=[SCHEMA],
    )
    response: dict[str, Any] = Field(
        {}, description="The JSON Schema of what a person may answer in its place; empty: a text.", examples=[{}]
    )


class StateAction(AskedAction):
    """One action of a gate of a run whose plan is registered: its arguments are in the state."""

    effect: str = Field("", description="The effect of the plan that performs it.", max_length=100, examples=["wire"])
    pointer: str = Field(
        "", description="Where in the state its arguments are.", max_length=1000, examples=["/payment"]
    )
    arguments: Any = Field(None, description="Only without `pointer`: they cannot be edited then.", examples=[None])
    edits: bool = Field(True, description="Whether people may edit it, where the plan lets them.", examples=[True])


class AskedCard(Words):
    """All that a gate asks."""

    actions: list[StateAction] = Field(description="What is asked about, one thing each.", max_length=50)
    quotes: list[Quoted] = Field([], description="What people said, beside the agent's account of it.", max_length=50)
    on_reject: str = Field("", description="Where a rejection goes back to; else as the plan says.", examples=[""])

    def card(self) -> Card:
        """As the runner takes it."""
        plain = self.model_dump(include=set(AskedCard.model_fields), by_alias=True)
        return Card.from_json(plain)
