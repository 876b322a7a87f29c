"""Tells the gates' app which agents answer questions, and wakes a worker that has the agent's code."""

from __future__ import annotations

from collections.abc import Callable

from agents.compatibility import deployed
from agents.definition import feedback, registry
from agents.ringing import doorbell
from approvals.gates import questions
from approvals.gates.questions import AnsweringAgents
from approvals.models import AgentQuestion
from checkpoints.models import Plan


def register() -> None:
    """Register the agents of this server. Called once, when the apps are ready."""
    questions.register(AnsweringAgents(answers=answers, ring=ring))


def answers(plan: Plan) -> bool | None:
    """Tell whether the plan's agent answers questions; None where its code is not here."""
    known = deployed.of(plan.pk)
    return None if known is None else feedback.answers(known.agent)


def idle(most: int) -> tuple[list[tuple[int, int]], Callable[[int], bool]]:
    """Return the (number, token) of questions that no worker holds, and how to ring for each."""
    found = AgentQuestion.objects.idle().select_related("gate__run__plan")[:most]
    plans = {each.pk: each.gate.run.plan for each in found}
    return [(each.pk, each.token) for each in found], lambda number: ring(number, plans[number])


def ring(question: int, plan: Plan) -> bool:
    """Wake a worker of the plan's agent for a question; nothing is sent for an external agent."""
    return doorbell.ring_for_question(question, registry.queue_for(plan))
