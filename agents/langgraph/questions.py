"""A graph's questions on the server: those that still wait with verdicts, and that of a breakpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdpoint.langgraph.interrupts import BREAKPOINT, GraphQuestion, identifier

from approvals.cards.action import APPROVE


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
