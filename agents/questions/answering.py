"""Has an agent answer a question, from the verified checkpoint of its gate. It writes nothing but the answer.

A worker holds the question for as long as the agent may take, by the database's clock. If it dies, the sweeper rings
for the next one, which begins again: that is harmless, since the agent's method only reads. An exception is no crash:
its words are the answer, and the person may ask again. The gates' app learns here which agents answer, and a
worker that has the agent's code is woken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import structlog

from agents.compatibility import edited_states
from agents.definition import environment, feedback, fields, registry
from agents.definition.agent import Agent, AgentType, RunInfo
from agents.definition.feedback import ReviewerQuestion, SaidAtGate
from agents.definition.plan_builder import parameter_names, steps_of
from agents.definition.registered import RegisteredAgent
from agents.errors import AgentError
from agents.ringing import doorbell
from agents.steps import alarms, execute
from approvals.audit import evidence
from approvals.gates import questions, reading, thread
from approvals.gates.questions import NO_HOOK, NOT_HERE, AnsweringAgents
from approvals.models import AgentQuestion
from approvals.schema import redact
from checkpoints import actors, crash_points
from checkpoints.errors import CheckpointError
from checkpoints.models import Plan
from checkpoints.values import patch

ATTEMPTS = 3  # workers that may die over one question
SLACK = timedelta(seconds=15)  # after the agent's own time limit; then a silent worker counts as lost
LONGEST = 600.0  # seconds that an agent may ask for
log = structlog.get_logger()


def answer(number: int) -> bool:
    """Answer a question that is due; False where there was nothing to do, or another worker was faster."""
    question = AgentQuestion.objects.take(number, lease=_limit(number) + SLACK)
    if question is None:
        return False
    crash_points.point("question_taken")
    began = time.monotonic()
    words, failed = _answer(question)
    crash_points.point("question_answered")
    agent = actors.of_agent(question.gate.run.plan.agent)
    done = questions.end(question, questions.cut(words), by=agent, failed=failed, token=question.token)
    took = round((time.monotonic() - began) * 1000, 1)
    log.info("question.answered", question=number, gate=question.gate_id, failed=failed, took_ms=took, recorded=done)
    return done


def _limit(number: int) -> timedelta:
    """Return for how long the question's agent may take."""
    plan = AgentQuestion.objects.filter(pk=number).values_list("gate__run__plan", flat=True).first()
    known = edited_states.known_agent(plan) if plan else None
    return timedelta(seconds=min(known.agent.answers_within, LONGEST) if known else 0)


def _answer(question: AgentQuestion) -> tuple[str, bool]:
    """Return (the agent's answer, False), or (why there is none, True)."""
    if question.attempts > ATTEMPTS:
        return f"Its worker was stopped {ATTEMPTS} times while it answered.", True
    known = edited_states.known_agent(question.gate.run.plan_id)
    if known is None or not feedback.answers(known.agent):
        return str(NOT_HERE if known is None else NO_HOOK), True
    try:
        asked, state = _read(question, known)
    except CheckpointError as fault:  # nobody is told anything that rests on it
        return str(fault), True
    veil = fields.veil(known.agent.State)
    hidden = [*veil.words(state), *veil.words(asked.state)] if veil else []
    failed = False
    try:
        said: object = _call(question, known, asked, state)
        if not isinstance(said, str) or not said.strip():
            said, failed = "It gave no words.", True
    except execute.RAISED as error:
        log.warning("question.failed", question=question.pk, exc_info=True)
        said, failed = execute.said(error), True
    return str(redact.scrubbed(str(said), hidden)), failed


def _read(question: AgentQuestion, known: RegisteredAgent) -> tuple[ReviewerQuestion, dict[str, Any]]:
    """Return the question as the agent gets it, and the state of the gate's checkpoint. Raises CheckpointError."""
    found = reading.read(question.gate_id)
    evidence.check(found.proposal)
    mine = next(each for each in thread.questions_of(found.gate) if each.question == question.pk)
    state: dict[str, Any] = found.gate.saved.state
    proposed = patch.apply(found.proposal.state_patch, state)
    asked = ReviewerQuestion(
        text=mine.text or "",
        by=actors.of_user(question.user).name,
        card=found.proposal.card,
        state=proposed,
        thread=tuple(
            SaidAtGate(text=each.text, by=each.who, at=each.at, agent=each.by_agent)
            for each in thread.of_gate(found.gate)
            if each.text is not None and each.question != question.pk
        ),
    )
    return asked, state


def _call(question: AgentQuestion, known: RegisteredAgent, asked: ReviewerQuestion, state: dict[str, Any]) -> Any:
    """Call the agent's method with what its parameters name. Raises whatever it raises."""
    agent, run = known.agent, question.gate.run
    config = environment.config_for(run, agent)
    wanted = parameter_names(getattr(agent, feedback.ANSWER))
    values = {name: fields.read(agent.State, name, state) for name in wanted if name != feedback.QUESTION}
    if feedback.QUESTION in wanted:
        values[feedback.QUESTION] = asked
    instance = _reading_only(agent)(RunInfo(run.pk, run.title), 1, config)
    method: Callable[..., Any] = getattr(instance, feedback.ANSWER)
    with limited(min(agent.answers_within, LONGEST)):
        return method(**values)


def _reading_only(agent: type[Agent]) -> type[Agent]:
    """Return the class without its effects and their undos: to answer a question changes nothing."""
    found = steps_of(agent)
    effects = [name for name, (_, said) in found.items() if said.kind == "effect"]
    undos = [name for _, said in found.values() if (name := said.planned().get("undo"))]
    return AgentType(agent.__name__, (agent,), {name: _refusing(name) for name in (*effects, *undos)})  # type: ignore[return-value]


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AgentError(f"An answer to a question only reads; it may not call {name}.")

    return refuse


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise StepTimeout inside the block after `seconds`, and again every second while it is swallowed."""
    alarm = alarms.made(seconds)
    over = threading.Event()

    def ring_again() -> None:
        pause = seconds
        while not over.wait(pause):
            alarm.ring()
            pause = 1.0

    if not isinstance(alarm, alarms.SignalAlarm):  # which rings by itself
        threading.Thread(target=ring_again, name="question", daemon=True).start()
    try:
        with alarms.armed(alarm):
            yield
    finally:
        over.set()


def register() -> None:
    """Register the agents of this server. Called once, when the apps are ready."""
    questions.register(AnsweringAgents(answers=answers, ring=ring))


def answers(plan: Plan) -> bool | None:
    """Tell whether the plan's agent answers questions; None where its code is not here."""
    known = edited_states.known_agent(plan.pk)
    return None if known is None else feedback.answers(known.agent)


def idle(most: int) -> tuple[list[tuple[int, int]], Callable[[int], bool]]:
    """Return the (number, token) of questions that no worker holds, and how to ring for each."""
    found = AgentQuestion.objects.idle().select_related("gate__run__plan")[:most]
    plans = {each.pk: each.gate.run.plan for each in found}
    return [(each.pk, each.token) for each in found], lambda number: ring(number, plans[number])


def ring(question: int, plan: Plan) -> bool:
    """Wake a worker of the plan's agent for a question; nothing is sent for an external agent."""
    return doorbell.ring_for_question(question, registry.queue_for(plan))
