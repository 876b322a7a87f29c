"""Request schemas of what a gate asks: its texts, quotes and actions."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from agents.api.protocol.schemas import Order, refuse_unknown
from approvals.cards import drawing
from approvals.cards.action import VERDICTS
from approvals.cards.card import IDENTIFIER, RISKS, Card

WIRE: dict[str, Any] = {"to": "ACME Ltd", "iban": "DE02120300000000202051", "amount": "120.00"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "iban": {"type": "string"}, "amount": {"type": "string"}},
    "required": ["to", "iban", "amount"],
}


def _identifier(name: str) -> str:
    if name and not IDENTIFIER.fullmatch(name):
        raise ValueError(f"{name[:40]!r} is not an identifier of plain letters, digits, . : _ -")
    return name


Identifier = Annotated[str, AfterValidator(_identifier)]


class CostOfDelay(Order):
    """The cost of a gate's waiting."""

    example: ClassVar = {"amount": "350.00", "currency": "EUR", "per": "hour"}

    amount: str = Field(pattern=r"^[0-9]{1,14}(\.[0-9]{1,6})?$")
    """A plain number."""
    currency: str = Field(pattern="^[A-Z]{3}$")
    """Its ISO 4217 code."""
    per: Annotated[str, refuse_unknown("hour")] = Field("hour", json_schema_extra={"enum": ["hour"]})
    """The time that costs so much."""


class CardText(Order):
    """The texts that people read at a gate. The agent wrote them: data, never markup."""

    example: ClassVar = {
        "title": "Wire 120.00 EUR", "summary": "Invoice 7 is due.", "for_whom": "ACME Ltd", "amount": "120.00 EUR",
        "cost_of_delay": None, "resource": "Invoice 7", "risk": "medium",
        "reasons": ["The first payment to this account"],
    }  # fmt: skip

    title: str = Field(min_length=1, max_length=500)
    """What the agent proposes, in one line."""
    summary: str = Field("", max_length=20_000)
    """The agent's explanation."""
    for_whom: str = Field("", max_length=500)
    """The person it is about."""
    amount: str = Field("", max_length=200)
    """The amount, as people write it."""
    cost_of_delay: CostOfDelay | None = None
    """What it costs that nobody decides; people order the inbox by it. null: not stated."""
    resource: str = Field("", max_length=500)
    """What it acts on."""
    risk: Annotated[str, refuse_unknown(*RISKS)] = Field("medium", json_schema_extra={"enum": list(RISKS)})
    """The risk."""
    reasons: list[str] = Field([], max_length=50)
    """The reasons for the risk."""

    def card(self) -> Card:
        """Return the whole card for the engine; members that a card does not have are dropped."""
        return Card.from_json(self.model_dump(exclude={"state"}, by_alias=True))


class Quoted(Order):
    """A quote from the state, shown as somebody's own words."""

    example: ClassVar = {"label": "Ellery, Marit", "pointer": "/mail/text", "role": "by mail"}

    label: str = Field(max_length=200)
    """Who said it."""
    pointer: str = Field(max_length=1000)
    """The place of the text in the state."""
    role: str = Field("", max_length=200)
    """Their role, and how the text arrived."""


class AskedDrawing(Order):
    """A way to draw arguments, beside their exact values. The places are JSON Pointers to texts in the arguments."""

    example: ClassVar = {
        "kind": "diff", "at": "/new_string", "before": "/old_string", "name": "/file_path", "words": "", "was": "",
    }  # fmt: skip

    kind: Annotated[str, refuse_unknown(*drawing.KINDS)] = Field(json_schema_extra={"enum": list(drawing.KINDS)})
    """diff: one text takes the place of another. fields: an object beside the one that is there now, so that people may
    leave single changes out. command: a text as it will run."""
    at: str = Field(max_length=1000)
    """The new text, the new object (empty: all arguments), or the command."""
    before: str = Field("", max_length=1000)
    """Of a diff: the text that goes."""
    name: str = Field("", max_length=1000)
    """Of a diff: the name of what is changed."""
    words: str = Field("", max_length=1000)
    """Of a command: what the agent says of it."""
    was: str = Field("", max_length=200_000)
    """Of fields, and of a diff without `before`: what was there when you asked, and no place: a text, or an object as
    JSON."""


class AskedAction(Order):
    """One action of a gate."""

    example: ClassVar = {
        "id": "wire", "title": "Wire money", "tool": "wire", "pinned": ["/amount", "/iban"], "missing": [],
        "draws": [], "verdicts": ["approve", "edit", "reject"], "schema": SCHEMA, "response": {},
    }  # fmt: skip

    id: Identifier = Field(min_length=1, max_length=100)
    """Its id, unique in the gate."""
    title: str = Field("", max_length=500)
    """Its title; empty: the tool's name."""
    tool: Identifier = Field("", max_length=100)
    """The tool's name; empty: the id."""
    pinned: list[str] = Field([], max_length=50)
    """JSON Pointers to arguments that are shown first and never folded."""
    missing: list[str] = Field([], max_length=50)
    """JSON Pointers to arguments that a person must fill in or change; until then an approval is refused (422, with the
    pointer)."""
    draws: list[AskedDrawing] = Field([], max_length=drawing.MOST)
    """How people see the arguments, beside their exact values."""
    verdicts: list[Annotated[str, refuse_unknown(*VERDICTS)]] = Field(
        [], max_length=len(VERDICTS), json_schema_extra={"items": {"type": "string", "enum": list(VERDICTS)}}
    )
    """The allowed verdicts; empty: approve, reject, and edit if the arguments may be edited."""
    arguments_schema: dict[str, Any] = Field({}, alias="schema")
    """The JSON Schema of its arguments. The form is made from it, and the arguments must satisfy it."""
    response: dict[str, Any] = {}
    """The JSON Schema of what a person may answer instead; empty: a text."""


class StateAction(AskedAction):
    """One action of a gate of a run whose plan is registered: its arguments are in the state."""

    example: ClassVar = {"effect": "wire", "pointer": "/payment", "arguments": None, "edits": True}

    effect: str = Field("", max_length=100)
    """The effect of the plan that performs it."""
    pointer: str = Field("", max_length=1000)
    """The place of its arguments in the state."""
    arguments: Any = None
    """Only without `pointer`; such arguments cannot be edited."""
    edits: bool = True
    """Whether people may edit it, if the plan allows that."""


class AskedCard(CardText):
    """The whole proposal of a gate."""

    example: ClassVar = {"on_reject": ""}

    actions: list[StateAction] = Field(max_length=50)
    """The actions to decide."""
    quotes: list[Quoted] = Field([], max_length=50)
    """People's own words, shown beside the agent's account."""
    on_reject: str = ""
    """The step that a rejection goes back to; empty: as the plan says."""
