"""Interprets a turn of the model, and trims the conversation to a budget of tokens. Pure.

A conversation keeps its beginning (how to work, and the task) and the newest rounds: a round is one turn of the model
with the results of its calls, which endpoints take together or not at all. One message takes the place of the rounds
that are left out; earlier checkpoints hold them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise

from django.conf import settings

from agents import StepFailed
from checkpoints.values.ops import Splice

from . import tools, words
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


def read_turn(turn: Turn, number: int) -> Taken:
    """Return what follows from turn `number`. Raises StepFailed where the endpoint's filter stopped it."""
    ids = tools.name_calls([each.id for each in turn.calls], number)
    asked = [each.model_copy(update={"id": id}) for each, id in zip(turn.calls, ids, strict=True)]
    mine = Message(role="assistant", content=turn.text or turn.refusal, calls=asked)
    if asked:
        calls, told = tools.read_calls(asked)
        why = "" if calls else told[0].content
        note = ", ".join(words.said_of(call) for call in calls) or "No call of this turn could be read."
        return Taken([mine, *told], calls, why=why, note=note)
    if turn.finish == "content_filter":
        raise StepFailed("The filter of the model's endpoint stopped its answer; word the task in another way.")
    if turn.finish == "length":
        return _asked_anew(mine, words.CUT, "its answer was cut off at the length limit.")
    if not mine.content.strip():
        return _asked_anew(mine, words.EMPTY, "its answer was empty.")
    return Taken([mine], answer=mine.content, note="The model declined." if turn.refusal and not turn.text else "")


def _asked_anew(mine: Message, words: str, why: str) -> Taken:
    said = [mine] if mine.content.strip() else []  # endpoints refuse an empty message of their own
    return Taken([*said, Message(role="user", content=words)], why=why, note=f"The model was asked again: {why}")


def count_usage(usage: Usage, turn: Turn) -> Usage:
    """Return the usage with this turn's tokens added, and with their cost if prices are set."""
    now = usage.model_copy(
        update={"turns": usage.turns + 1, "read": usage.read + turn.read, "wrote": usage.wrote + turn.wrote}
    )
    prices = settings.HOLDPOINT_ASSISTANT_PRICE_IN, settings.HOLDPOINT_ASSISTANT_PRICE_OUT
    if any(prices):
        cost = (turn.read * Decimal(str(prices[0])) + turn.wrote * Decimal(str(prices[1]))) / MILLION
        now.cost = (usage.cost or Decimal(0)) + cost
    return now


HEAD = 2  # how to work, and the task
AIM = 0.6  # of the budget is left, so that it is not trimmed at every turn
SAID = "[{} earlier messages are left out here to save room. Call a tool again for what you need of them.]"
_LEFT_OUT = re.compile(r"\[([0-9]+) earlier messages are left out here")


def count_tokens(messages: Sequence[Message]) -> int:
    """About how many tokens they are."""
    letters = sum(
        len(each.content) + sum(len(call.arguments) + len(call.name) + 20 for call in each.calls) for each in messages
    )
    return letters // 4 + 8 * len(messages)


def cut_oldest(messages: Sequence[Message], budget: int) -> Splice | None:
    """Return what to put in the place of the oldest rounds; None if all fits, or nothing can go."""
    if count_tokens(messages) <= budget:
        return None
    before = _left_out(messages)
    first = HEAD + (1 if before else 0)
    turns = [n for n, each in enumerate(messages) if n >= first and each.role == "assistant"]
    # What lies between two turns goes with the one before it; the newest turn stays.
    ends = [after for _, after in pairwise(turns)]
    if not ends:
        return None
    fitting = (end for end in ends if count_tokens([*messages[:HEAD], *messages[end:]]) <= AIM * budget)
    end = next(fitting, ends[-1])
    number = before + end - first
    return Splice(HEAD, end - HEAD, [Message(role="user", content=SAID.format(number))])


def _left_out(messages: Sequence[Message]) -> int:
    """Count the messages that were left out before."""
    found = _LEFT_OUT.match(messages[HEAD].content) if len(messages) > HEAD else None
    return int(found.group(1)) if found else 0
