"""Trims the conversation to a budget of tokens, counted at four characters each. Pure.

It keeps the beginning (how to work, and the task) and the newest rounds: a round is one turn of the model with the
results of its calls, which endpoints take together or not at all. One message takes the place of the rounds left out.
Nothing is lost: earlier checkpoints hold them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from checkpoints.values.ops import Splice

from .state import Message

HEAD = 2  # how to work, and the task
AIM = 0.6  # of the budget is left, so that it is not trimmed at every turn
SAID = "[{} earlier messages are left out here to save room. Call a tool again for what you need of them.]"
_LEFT_OUT = re.compile(r"\[([0-9]+) earlier messages are left out here")


def tokens(messages: Sequence[Message]) -> int:
    """About how many tokens they are."""
    letters = sum(
        len(each.content) + sum(len(call.arguments) + len(call.name) + 20 for call in each.calls) for each in messages
    )
    return letters // 4 + 8 * len(messages)


def cut(messages: Sequence[Message], budget: int) -> Splice | None:
    """Return what to put in the place of the oldest rounds; None if all fits, or nothing can go."""
    if tokens(messages) <= budget:
        return None
    before = _left_out(messages)
    first = HEAD + (1 if before else 0)
    turns = [n for n, each in enumerate(messages) if n >= first and each.role == "assistant"]
    # What lies between two turns goes with the one before it; the newest turn stays.
    ends = [after for _, after in pairwise(turns)]
    if not ends:
        return None
    fitting = (end for end in ends if tokens([*messages[:HEAD], *messages[end:]]) <= AIM * budget)
    end = next(fitting, ends[-1])
    number = before + end - first
    return Splice(HEAD, end - HEAD, [Message(role="user", content=SAID.format(number))])


def _left_out(messages: Sequence[Message]) -> int:
    """Count the messages that were left out before."""
    found = _LEFT_OUT.match(messages[HEAD].content) if len(messages) > HEAD else None
    return int(found.group(1)) if found else 0
