"""Reads the conversation about a gate: what is said at it, and reviewers' words at the run's earlier gates.

A question to the agent stands with its answer, wherever in time that came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User

from approvals.gates import questions, thread
from approvals.gates.thread import HERE, SHOWN, ThreadEvent
from approvals.models import Gate
from checkpoints import actors

HOW = {
    "approve": "reviewer, approved",
    "edit": "reviewer, approved with an edit",
    "reject": "reviewer, rejected",
    "answer": "reviewer, answered",
    "mixed": "reviewer, decided action by action",
}


@dataclass(frozen=True, kw_only=True)
class AgentAnswer:
    """The agent's answer to a question, or its failure to give one. `text` is None where the words were erased."""

    at: datetime
    text: str | None
    failed: bool


@dataclass(frozen=True, kw_only=True)
class ConversationEntry:
    """One person's words. `text` is None where they have been erased."""

    who: str
    you: bool
    at: datetime
    text: str | None
    how: str = ""  # what they did: "reviewer, rejected"
    gate: int = 0
    question: int = 0  # its number, where it was put to the agent
    answer: AgentAnswer | None = None


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """Both parts, each oldest first."""

    here: Sequence[ConversationEntry]
    before: Sequence[ConversationEntry]


def conversation(gate: Gate, *, user: User, earlier: bool) -> Conversation:
    """Read it in one statement. `earlier`: with the words at the run's other gates, for readers who may see them.

    Where so much was said in the run since that its latest words may not reach back to this gate, in two.
    """
    rows = thread.of_run(gate) if earlier else []
    reaches = earlier and len(rows) < 2 * SHOWN
    own = rows if reaches else thread.of_gate(gate)[::-1]
    here = [each for each in own if each.gate == gate.pk and each.kind in HERE]
    before = [each for each in rows if each.gate != gate.pk and each.kind == thread.DECIDED]
    answers = {
        each.question: AgentAnswer(at=each.at, text=each.text, failed=each.kind == questions.FAILED)
        for each in here
        if each.by_agent
    }
    said = [each for each in here if not each.by_agent]
    return Conversation(
        here=[_said(each, user, answers.get(each.question)) for each in said[:SHOWN][::-1]],
        before=[_said(each, user) for each in before[:SHOWN][::-1]],
    )


def _said(event: ThreadEvent, user: User, answer: AgentAnswer | None = None) -> ConversationEntry:
    decided = str(event.data.get("kind", "")) if event.kind == thread.DECIDED else ""
    return ConversationEntry(
        who=event.who,
        you=event.actor == actors.of_user(user).id,
        at=event.at,
        text=event.text,
        how=HOW.get(decided, ""),
        gate=event.gate,
        question=event.question,
        answer=answer if event.question else None,
    )
