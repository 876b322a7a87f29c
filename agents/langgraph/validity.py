"""Tells which decisions hold for what the graph does now: those given since people last moved the run.

A decision is for one execution. After a rewind, an edit or a fork the state may still have a gate's decision, verdicts
that wait for others, answers, and calls that are due: all of them were given for what has run, or was left, before. So
each is marked with the move after which it was given, and counts only while that is still the newest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from holdpoint.langgraph.interrupts import GraphQuestion

from agents.definition.agent import Agent

SINCE = "since"


def newest_move(agent: Agent) -> str:
    """Return the checkpoint by which people last moved the run; "" where nobody did.

    A rejection that tells the graph is no move: the gate sends the run to `prepare` to hear it.
    """
    moves = agent.memory.moves() if agent.memory is not None else ()
    return next((id for id, *between in moves if between != ["ask", "prepare"]), "")


def decided_here(agent: Agent) -> bool:
    """Tell whether the decision in the state is that of the gate before this step, and nobody's who moved the run.

    The engine reuses an earlier approval where all that it allowed is done; what a graph did under one it cannot know.
    """
    return agent.memory is not None and agent.memory.sent() in (("gate", "ask"), ("rewind", "ask"))


def passed_on(agent: Agent) -> bool:
    """Tell whether `prepare` has just passed on a decision that it found valid."""
    return agent.memory is not None and agent.memory.sent() == ("step", "prepare")


def sent_here(agent: Agent, step: str) -> bool:
    """Tell whether people have just moved the run to this step."""
    return agent.memory is not None and agent.memory.sent() in (("rewind", step), ("edit", step))


def valid(questions: Sequence[GraphQuestion], since: str) -> list[GraphQuestion]:
    """Return the questions without the verdicts that were given before the newest move."""
    return [
        question
        if question.decided is None or question.decided.get(SINCE, "") == since
        else question.model_copy(update={"decided": None})
        for question in questions
    ]


def renewed(position: dict[str, Any]) -> dict[str, Any]:
    """Return the position with another mark, so that its questions are asked anew, and without what they led to."""
    notes = [note for note in position["told"] if note.get("mark") != position["mark"]]
    return {**position, "told": notes, "mark": uuid4().hex}
