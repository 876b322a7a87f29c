"""Reads the conversation about a gate: what is said at it, and reviewers' words at the run's earlier gates.

A question to the agent stands with its answer, wherever in time that came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

from approvals.gates import thread
from approvals.gates.thread import HERE, SHOWN, ThreadEvent
from approvals.models import Decision, Gate
from checkpoints import actors

HOW = {value: f"reviewer, {label.lower()}" for value, label in Decision.Verdict.choices}


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """Both parts, each oldest first."""

    you: str  # the reader, as the actor of an entry
    here: Sequence[tuple[ThreadEvent, ThreadEvent | None]]  # each question to the agent with its answer
    before: Sequence[tuple[ThreadEvent, str]]  # each with what its author did then


def conversation(gate: Gate, *, user: User, earlier: bool) -> Conversation:
    """Read it in one statement. `earlier`: with the words at the run's other gates, for readers who may see them.

    Where so much was said in the run since that its latest words may not reach back to this gate, in two.
    """
    rows = thread.of_run(gate) if earlier else []
    reaches = earlier and len(rows) < 2 * SHOWN
    own = rows if reaches else thread.of_gate(gate)[::-1]
    here = [each for each in own if each.gate == gate.pk and each.kind in HERE]
    before = [each for each in rows if each.gate != gate.pk and each.kind == thread.DECIDED]
    answers = {each.question: each for each in here if each.by_agent}
    said = [each for each in here if not each.by_agent]
    return Conversation(
        you=actors.of_user(user).id,
        here=[(each, answers.get(each.question) if each.question else None) for each in said[:SHOWN][::-1]],
        before=[(each, HOW.get(str(each.data.get("kind", "")), "")) for each in before[:SHOWN][::-1]],
    )
