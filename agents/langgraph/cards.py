"""Draws the card for a graph's questions: an action for each, with its own verdicts and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdpoint.langgraph.answers import takes_refusal
from holdpoint.langgraph.questions import ANSWER, BATCHED, BREAKPOINT, GraphQuestion

from approvals.cards.action import LATER, Action
from approvals.cards.card import Card
from approvals.cards.quote import Quote
from approvals.english import listed

LINE = 200  # characters of a title
MIDDLEWARE = "HumanInTheLoopMiddleware.after_model"  # the node of LangChain's that asks


def drawn(asked: Sequence[GraphQuestion], *, risk: str) -> Card:
    """Return the card for the questions that nobody has decided."""
    waiting = [(at, each) for at, each in enumerate(asked) if not each.decided]
    only = waiting[0][1] if len(waiting) == 1 else None
    calls = all(each.form not in (ANSWER, BREAKPOINT) for _, each in waiting)
    several = f"{len(waiting)} calls to review" if calls else f"{len(waiting)} questions of the graph"
    faults = [f"The last answer to “{each.title}” was not taken: {each.fault}." for _, each in waiting if each.fault]
    nodes = list(dict.fromkeys(f"“{each.node}”" for _, each in waiting if each.node and not _only_asks(each)))
    runs = "the node {} runs again from its start" if len(nodes) == 1 else "the nodes {} run again from their start"
    again = f"With the answer {runs.format(listed(nodes))}." if nodes else ""
    return Card(
        title=only.title if only else several,
        summary="\n\n".join(filter(None, [*faults, only.description if only else "", again])),
        risk=risk,
        actions=[_action(at, each, several=only is None) for at, each in waiting],
        quotes=[
            Quote(label=each.title, role="what the graph says of it", pointer=f"/questions/{at}/description")
            for at, each in waiting
            if only is None and each.description
        ],
        on_reject="prepare" if all(takes_refusal(each) for _, each in waiting) else "go",
    )


def _only_asks(question: GraphQuestion) -> bool:
    """Tell whether the node is LangChain's own, which does nothing beside asking."""
    return question.form == BATCHED and question.node == MIDDLEWARE


def _action(at: int, question: GraphQuestion, *, several: bool) -> Action:
    return Action(
        id=question.id,
        title=question.title,
        tool=question.tool,
        pointer=f"/questions/{at}/arguments",
        schema=question.takes,
        missing=question.missing,
        verdicts=[*question.allowed, *[LATER] * several],  # of several, one may be left for later
    )


def first_words(values: Mapping[str, Any]) -> str:
    """Return the beginning of what a run begins with: its first message, or its first text."""
    messages = values.get("messages") or []
    shown = [_content(messages[0])] if messages else [each for each in values.values() if isinstance(each, str)]
    return _line(next((text for text in shown if text.strip()), ""))


def last_words(values: Mapping[str, Any]) -> str:
    """Return the last message of a model, or what the graph returned if that is a text."""
    said = [_content(each) for each in values.get("messages") or [] if _is_models(each)]
    output = values.get("output")
    return next((text for text in reversed(said) if text.strip()), output if isinstance(output, str) else "")


def _content(message: Any) -> str:
    content = message.get("content", "") if isinstance(message, Mapping) else message
    if isinstance(content, list):
        return " ".join(str(each.get("text", "")) for each in content if isinstance(each, Mapping))
    return content if isinstance(content, str) else ""


def _is_models(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("type") in ("ai", "AIMessageChunk")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE else line[: LINE - 1] + "…"
