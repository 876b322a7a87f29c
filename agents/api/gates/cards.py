"""Request schemas of what a gate asks: its texts, quotes and actions."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from agents.api.protocol import known
from agents.api.runs.moves import Order
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

    amount: str = Field(description="A plain number.", pattern=r"^[0-9]{1,14}(\.[0-9]{1,6})?$", examples=["350.00"])
    currency: str = Field(description="Its ISO 4217 code.", pattern="^[A-Z]{3}$", examples=["EUR"])
    per: Annotated[str, known("hour")] = Field(
        "hour", description="The time that costs so much.", examples=["hour"], json_schema_extra={"enum": ["hour"]}
    )


class CardText(Order):
    """The texts that people read at a gate. The agent wrote them: data, never markup."""

    title: str = Field(
        description="What the agent proposes, in one line.", min_length=1, max_length=500, examples=["Wire 120.00 EUR"]
    )
    summary: str = Field("", description="The agent's explanation.", max_length=20_000, examples=["Invoice 7 is due."])
    for_whom: str = Field("", description="The person it is about.", max_length=500, examples=["ACME Ltd"])
    amount: str = Field("", description="The amount, as people write it.", max_length=200, examples=["120.00 EUR"])
    cost_of_delay: CostOfDelay | None = Field(
        None,
        description="What it costs that nobody decides; people order the inbox by it. null: not stated.",
        examples=[None],
    )
    resource: str = Field("", description="What it acts on.", max_length=500, examples=["Invoice 7"])
    risk: Annotated[str, known(*RISKS)] = Field(
        "medium", description="The risk.", examples=["medium"], json_schema_extra={"enum": list(RISKS)}
    )
    reasons: list[str] = Field(
        [], description="The reasons for the risk.", max_length=50, examples=[["The first payment to this account"]]
    )

    def card(self) -> Card:
        """Return the whole card for the engine; members that a card does not have are dropped."""
        return Card.from_json(self.model_dump(exclude={"state"}, by_alias=True))


class Quoted(Order):
    """A quote from the state, shown as somebody's own words."""

    label: str = Field(description="Who said it.", max_length=200, examples=["Ellery, Marit"])
    pointer: str = Field(description="The place of the text in the state.", max_length=1000, examples=["/mail/text"])
    role: str = Field("", description="Their role, and how the text arrived.", max_length=200, examples=["by mail"])


class AskedDrawing(Order):
    """A way to draw arguments, beside their exact values. The places are JSON Pointers to texts in the arguments."""

    kind: Annotated[str, known(*drawing.KINDS)] = Field(
        description="diff: one text takes the place of another. fields: an object beside the one that is there now, so "
        "that people may leave single changes out. command: a text as it will run.",
        examples=["diff"],
        json_schema_extra={"enum": list(drawing.KINDS)},
    )
    at: str = Field(
        description="The new text, the new object (empty: all arguments), or the command.",
        max_length=1000,
        examples=["/new_string"],
    )
    before: str = Field("", description="Of a diff: the text that goes.", max_length=1000, examples=["/old_string"])
    name: str = Field(
        "", description="Of a diff: the name of what is changed.", max_length=1000, examples=["/file_path"]
    )
    words: str = Field("", description="Of a command: what the agent says of it.", max_length=1000, examples=[""])
    was: str = Field(
        "",
        description="Of fields, and of a diff without `before`: what was there when you asked, and no place: a text, "
        "or an object as JSON.",
        max_length=200_000,
        examples=[""],
    )


class AskedAction(Order):
    """One action of a gate."""

    id: Identifier = Field(description="Its id, unique in the gate.", min_length=1, max_length=100, examples=["wire"])
    title: str = Field("", description="Its title; empty: the tool's name.", max_length=500, examples=["Wire money"])
    tool: Identifier = Field("", description="The tool's name; empty: the id.", max_length=100, examples=["wire"])
    pinned: list[str] = Field(
        [],
        description="JSON Pointers to arguments that are shown first and never folded.",
        max_length=50,
        examples=[["/amount", "/iban"]],
    )
    missing: list[str] = Field(
        [],
        description="JSON Pointers to arguments that a person must fill in or change; until then an approval is "
        "refused (422, with the pointer).",
        max_length=50,
        examples=[[]],
    )
    draws: list[AskedDrawing] = Field(
        [],
        description="How people see the arguments, beside their exact values.",
        max_length=drawing.MOST,
        examples=[[]],
    )
    verdicts: list[Annotated[str, known(*VERDICTS)]] = Field(
        [],
        description="The allowed verdicts; empty: approve, reject, and edit if the arguments may be edited.",
        max_length=len(VERDICTS),
        examples=[["approve", "edit", "reject"]],
        json_schema_extra={"items": {"type": "string", "enum": list(VERDICTS)}},
    )
    arguments_schema: dict[str, Any] = Field(
        {},
        alias="schema",
        description="The JSON Schema of its arguments. The form is made from it, and the arguments must satisfy it.",
        examples=[SCHEMA],
    )
    response: dict[str, Any] = Field(
        {}, description="The JSON Schema of what a person may answer instead; empty: a text.", examples=[{}]
    )


class StateAction(AskedAction):
    """One action of a gate of a run whose plan is registered: its arguments are in the state."""

    effect: str = Field("", description="The effect of the plan that performs it.", max_length=100, examples=["wire"])
    pointer: str = Field(
        "", description="The place of its arguments in the state.", max_length=1000, examples=["/payment"]
    )
    arguments: Any = Field(
        None, description="Only without `pointer`; such arguments cannot be edited.", examples=[None]
    )
    edits: bool = Field(True, description="Whether people may edit it, if the plan allows that.", examples=[True])


class AskedCard(CardText):
    """The whole proposal of a gate."""

    actions: list[StateAction] = Field(description="The actions to decide.", max_length=50)
    quotes: list[Quoted] = Field([], description="People's own words, shown beside the agent's account.", max_length=50)
    on_reject: str = Field(
        "", description="The step that a rejection goes back to; empty: as the plan says.", examples=[""]
    )
