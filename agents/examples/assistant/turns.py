"""Interprets a turn of the model: calls to make, an answer, or nothing usable. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from django.conf import settings

from agents import StepFailed

from . import tools as assistant_tools
from . import words as assistant_words
from .model import Turn
from .state import AnyCall, Message, Usage

MILLION = Decimal(1_000_000)


@dataclass(frozen=True)
class Taken:
    """A turn, as it goes on from there."""

    messages: list[Message]  # the model's own, what it is told of calls that cannot be made, and what it is asked anew
    calls: list[AnyCall] = field(default_factory=list)
    answer: str = ""  # of a turn without calls
    why: str = ""  # nothing of it can be used
    note: str = ""

    @property
    def useless(self) -> bool:
        return bool(self.why)


def taken(turn: Turn, number: int) -> Taken:
    """Return what follows from turn `number`. Raises StepFailed where the endpoint's filter stopped it."""
    ids = assistant_tools.named([each.id for each in turn.calls], number)
    asked = [each.model_copy(update={"id": id}) for each, id in zip(turn.calls, ids, strict=True)]
    mine = Message(role="assistant", content=turn.text or turn.refusal, calls=asked)
    if asked:
        calls, told = assistant_tools.read(asked)
        why = "" if calls else told[0].content
        note = ", ".join(assistant_words.said_of(call) for call in calls) or "No call of this turn could be read."
        return Taken([mine, *told], calls, why=why, note=note)
    if turn.finish == "content_filter":
        raise StepFailed("The filter of the model's endpoint stopped its answer; word the task in another way.")
    if turn.finish == "length":
        return _asked_anew(mine, assistant_words.CUT, "its answer was cut off at the length limit.")
    if not mine.content.strip():
        return _asked_anew(mine, assistant_words.EMPTY, "its answer was empty.")
    return Taken([mine], answer=mine.content, note="The model declined." if turn.refusal and not turn.text else "")


def _asked_anew(mine: Message, words: str, why: str) -> Taken:
    said = [mine] if mine.content.strip() else []  # endpoints refuse an empty message of their own
    return Taken([*said, Message(role="user", content=words)], why=why, note=f"The model was asked again: {why}")


def counted(usage: Usage, turn: Turn) -> Usage:
    """Return the usage with this turn's tokens added, and with their cost if prices are set."""
    now = usage.model_copy(
        update={"turns": usage.turns + 1, "read": usage.read + turn.read, "wrote": usage.wrote + turn.wrote}
    )
    prices = settings.HOLDPOINT_ASSISTANT_PRICE_IN, settings.HOLDPOINT_ASSISTANT_PRICE_OUT
    if any(prices):
        cost = (turn.read * Decimal(str(prices[0])) + turn.wrote * Decimal(str(prices[1]))) / MILLION
        now.cost = (usage.cost or Decimal(0)) + cost
    return now
