"""Asks a gate's agent a question while the gate stays open, and records its answer: events, with the words beside them.

The agent's code belongs to another app, which registers here how to tell whether an agent answers, and how to wake a
worker that has it answer. A program elsewhere reads the questions over the API. Nothing else of the gate or the run
changes, and people may decide before an answer comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django.contrib.auth.models import User
from django.db import transaction

from approvals.errors import Invalid, make_problem
from approvals.models import AgentQuestion, Gate
from approvals.webhooks import outbox
from checkpoints import actors
from checkpoints.actors import Actor
from checkpoints.models import Plan

from . import mentions, remarks

ASKED, ANSWERED, FAILED = "gate.question", "gate.answered", "gate.unanswered"
MOST_OPEN = 3  # without an answer, at one gate
MOST = 30  # at one gate, since each makes the agent work
LONGEST_ANSWER = 8_000  # characters
NO_HOOK = "This agent takes no questions."
NOT_HERE = "This server does not have the agent's code, so nobody can ask it."


@dataclass(frozen=True, kw_only=True)
class AnsweringAgents:
    """The agents of a server. `answers` tells whether a plan's agent does; None where its code is not here."""

    answers: Callable[[Plan], bool | None]
    ring: Callable[[int, Plan], bool]  # for the question of that number; whether a message went out


_registered: list[AnsweringAgents] = []


def register(agents: AnsweringAgents) -> None:
    """Register the agents whose code is on this server."""
    _registered.append(agents)


def why_not(gate: Gate) -> str:
    """Say why nobody can ask the gate's agent; "" where they can. Needs the gate's run with its plan."""
    if gate.status != Gate.Status.OPEN:
        return "This gate is closed."
    if gate.run.plan.external:
        return ""
    known = [each.answers(gate.run.plan) for each in _registered]
    return "" if True in known else NO_HOOK if False in known else NOT_HERE


def ask(gate: Gate, *, by: User, text: str, key: str) -> AgentQuestion:
    """Ask the gate's agent; the same person's same `key` gives the same question again.

    Whoever may see the gate may ask. Raises Invalid: for no words or too many, too many questions, a gate that is
    closed, an agent that takes none.
    """
    words = remarks.checked(text, key)
    with transaction.atomic(durable=True):
        held = Gate.objects.select_for_update(of=["self"]).select_related("run__plan", "policy", "team").get(pk=gate.pk)
        before = AgentQuestion.objects.filter(gate=held, user=by, key=key).first()
        if before is not None:
            return before
        _refuse(held)
        made = AgentQuestion.objects.create(gate=held, user=by, key=key)
        data = {"question": made.pk, "key": key}
        held.say("gate.question", by=actors.of_user(by), data=data, text=words)
        mentions.tell(held, words, by=by)
        outbox.tell_question(held, made, kind=ASKED)
        transaction.on_commit(partial(_ring, made.pk, held.run.plan))
    return made


def end(question: AgentQuestion, text: str, *, by: Actor, failed: bool = False, token: int | None = None) -> bool:
    """Record the agent's answer, or why there is none; False where the question has ended, or is another worker's.

    The words are the agent's: whoever shows them shows them as text.
    """
    status = AgentQuestion.Status.FAILED if failed else AgentQuestion.Status.ANSWERED
    with transaction.atomic():
        if not question.end(status, token=token):
            return False
        data = {"question": question.pk}
        question.gate.say("gate.unanswered" if failed else "gate.answered", by=by, data=data, text=text)
    return True


def cut(text: str) -> str:
    """Shorten an answer that nobody would read, and say by how much."""
    more = len(text) - LONGEST_ANSWER
    return text[:LONGEST_ANSWER] + f"… and {more:,} more characters" if more > 0 else text


def _refuse(gate: Gate) -> None:
    said = why_not(gate)
    if said:
        raise Invalid([make_problem(said, pointer="/text")])
    asked = gate.questions
    if asked.filter(status=AgentQuestion.Status.ASKED).count() >= MOST_OPEN:
        words = f"{MOST_OPEN} questions here have no answer yet. Wait for one of them."
        raise Invalid([make_problem(words, pointer="/text")])
    if asked.count() >= MOST:
        words = f"This gate has had {MOST} questions, which is the most."
        raise Invalid([make_problem(words, pointer="/text")])


def _ring(number: int, plan: Plan) -> None:
    for each in _registered:
        each.ring(number, plan)
