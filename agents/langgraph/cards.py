"""Draws the card for a graph's questions: an action for each, with its own verdicts and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdpoint.langgraph.interrupts import ANSWER, BATCHED, BREAKPOINT, GraphQuestion, takes_refusal

from approvals.cards.action import LATER, Action
from approvals.cards.card import Card
from approvals.cards.quote import Quote
from approvals.english import join_names

LINE = 200  # characters of a title
MIDDLEWARE = "HumanInTheLoopMiddleware.after_model"  # the node of LangChain's that asks


def draw_card(asked: Sequence[GraphQuestion], *, risk: str) -> Card:
    """Return the card for the questions that nobody has decided."""
    waiting = [(at, question) for at, question in enumerate(asked) if not question.decided]
    only = waiting[0][1] if len(waiting) == 1 else None
    calls = all(question.form not in (ANSWER, BREAKPOINT) for _, question in waiting)
    several = f"{len(waiting)} calls to review" if calls else f"{len(waiting)} questions of the graph"
    faults = [
        f"The last answer to “{question.title}” was not taken: {question.fault}."
        for _, question in waiting
        if question.fault
    ]
    nodes = list(
        dict.fromkeys(f"“{question.node}”" for _, question in waiting if question.node and not _only_asks(question))
    )
    runs = "the node {} runs again from its start" if len(nodes) == 1 else "the nodes {} run again from their start"
    again = f"With the answer {runs.format(join_names(nodes))}." if nodes else ""
    return Card(
        title=only.title if only else several,
        summary="\n\n".join(filter(None, [*faults, only.description if only else "", again])),
        risk=risk,
        actions=[_action(at, question, several=only is None) for at, question in waiting],
        quotes=[
            Quote(label=question.title, role="what the graph says of it", pointer=f"/questions/{at}/description")
            for at, question in waiting
            if only is None and question.description
        ],
        on_reject="prepare" if all(takes_refusal(question) for _, question in waiting) else "go",
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
    shown = [_content(messages[0])] if messages else [value for value in values.values() if isinstance(value, str)]
    return _line(next((text for text in shown if text.strip()), ""))


def last_words(values: Mapping[str, Any]) -> str:
    """Return the last message of a model, or what the graph returned if that is a text."""
    texts = [_content(message) for message in values.get("messages") or [] if _is_models(message)]
    output = values.get("output")
    return next((text for text in reversed(texts) if text.strip()), output if isinstance(output, str) else "")


def _content(message: Any) -> str:
    content = message.get("content", "") if isinstance(message, Mapping) else message
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _is_models(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("type") in ("ai", "AIMessageChunk")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE else line[: LINE - 1] + "…"
