"""A graph's questions on the server: those that wait with verdicts, that of a breakpoint, and the card of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdpoint.langgraph.interrupts import ANSWER, BATCHED, BREAKPOINT, GraphQuestion, identifier, takes_refusal

from approvals.cards.action import APPROVE, LATER, Action
from approvals.cards.card import Card
from approvals.cards.quote import Quote
from approvals.english import join_names
from checkpoints.values.characters import one_line

LINE = 200  # characters of a title
MIDDLEWARE = "HumanInTheLoopMiddleware.after_model"  # the node of LangChain's that does nothing beside asking


def stop(checkpoint: str, where: str, nodes: Sequence[str]) -> GraphQuestion:
    """Return the question of a breakpoint, `where`: "before" or "after" these nodes."""
    named = ", ".join(nodes)
    title = f"Go on {where} {named}"
    return GraphQuestion(
        id=checkpoint, form=BREAKPOINT, tool=identifier(nodes[0]), title=title, node="", allowed=[APPROVE],
        description=f"The graph stops {where} {named}, as it was compiled to.",
    )  # fmt: skip


def carried(now: Sequence[GraphQuestion], before: Sequence[GraphQuestion], *, fault: str = "") -> list[GraphQuestion]:
    """Return the questions as they are now, with verdicts and faults of before that they still wait with.

    `fault`: why the graph did not take the last answers.
    """
    known = {question.id: question for question in before}
    now = [question.model_copy(update={"fault": fault}) for question in now]
    return [
        question.model_copy(update={"decided": was.decided, "fault": was.fault or fault, "arguments": was.arguments})
        if (was := known.get(question.id)) is not None and was.asked == question.asked and was.form == question.form
        else question
        for question in now
    ]


def as_json(value: Any) -> Any:
    """Return a value as JSON that a reviewer reads."""
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(name): as_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    dump = getattr(value, "model_dump", None)
    return as_json(dump(mode="json")) if dump is not None else str(value)


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
    asking = [question for _, question in waiting if question.form == BATCHED and question.node == MIDDLEWARE]
    working = [question for _, question in waiting if question.node and question not in asking]
    nodes = list(dict.fromkeys(f"“{question.node}”" for question in working))
    runs = "the node {} runs again from its start" if len(nodes) == 1 else "the nodes {} run again from their start"
    again = f"With the answer {runs.format(join_names(nodes))}." if nodes else ""
    return Card(
        title=only.title if only else several,
        summary="\n\n".join(filter(None, [*faults, only.description if only else "", again])),
        risk=risk,
        actions=[
            Action(
                id=question.id,
                title=question.title,
                tool=question.tool,
                pointer=f"/questions/{at}/arguments",
                schema=question.takes,
                missing=question.missing,
                verdicts=[*question.allowed, *[LATER] * (only is None)],  # of several, one may be left for later
            )
            for at, question in waiting
        ],
        quotes=[
            Quote(label=question.title, role="what the graph says of it", pointer=f"/questions/{at}/description")
            for at, question in waiting
            if only is None and question.description
        ],
        on_reject="prepare" if all(takes_refusal(question) for _, question in waiting) else "go",
    )


def first_words(values: Mapping[str, Any]) -> str:
    """Return the beginning of what a run begins with: its first message, or its first text."""
    messages = values.get("messages") or []
    shown = [_content(messages[0])] if messages else [value for value in values.values() if isinstance(value, str)]
    return one_line(next((text for text in shown if text.strip()), ""), LINE)


def last_words(values: Mapping[str, Any]) -> str:
    """Return the last message of a model, or what the graph returned if that is a text."""
    models = ("ai", "AIMessageChunk")
    messages = [message for message in values.get("messages") or [] if isinstance(message, Mapping)]
    texts = [_content(message) for message in messages if message.get("type") in models]
    output = values.get("output")
    return next((text for text in reversed(texts) if text.strip()), output if isinstance(output, str) else "")


def _content(message: Any) -> str:
    content = message.get("content", "") if isinstance(message, Mapping) else message
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""
