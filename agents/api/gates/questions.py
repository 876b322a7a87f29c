"""Questions to the agent at a gate: reading them, asking one, and answering one as the program that asks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.api.protocol.answers import answer_json
from agents.api.protocol.auth import actor_of, require_scope
from agents.api.protocol.idempotency_keys import Key, do_once, keep_answer, own_key
from agents.api.protocol.schemas import ApiSchema, GateId, Order, one_of
from agents.models import TokenScope
from agents.remote import reach
from agents.work_errors import WorkRefused
from approvals.gates import questions, thread
from approvals.models import AgentQuestion, Gate
from approvals.views.access import gate_or_404, reader_of

DECIDE, WORK = require_scope(TokenScope.DECIDE), require_scope(TokenScope.WORK)
router = Router(tags=["gates"], auth=require_scope(TokenScope.SEE))


class AskAgent(Order):
    """A question to the agent."""

    example: ClassVar = {"text": "Why 120.00, and not 100.00?"}

    text: str = Field(min_length=1, max_length=4_000)
    """The question."""


class SendAnswer(Order):
    """An answer, in the agent's own words."""

    example: ClassVar = {"question": 3, "text": "The invoice names 120.00.", "failed": False}

    question: int = Field(ge=1, lt=2**63)
    """The question's number."""
    text: str = Field(min_length=1, max_length=questions.LONGEST_ANSWER)
    """The answer, or the reason why there is none. People read it as text."""
    failed: bool = False
    """Whether the text says why you cannot answer."""


class QuestionAnswer(ApiSchema):
    """A question to the agent, with its answer."""

    example: ClassVar = {
        "id": 3, "gate": 42, "status": "asked", "by": "Ann Okafor", "at": "2026-03-02T09:21:40.555012Z",
        "text": "Why 120.00?", "answer": None,
    }  # fmt: skip

    id: int
    """The question's number."""
    gate: int
    """The gate at which it was asked."""
    status: Annotated[str, one_of(AgentQuestion.Status)]
    """failed: the agent could not answer."""
    by: str
    """Who asked."""
    at: datetime
    """When."""
    text: str | None
    """The question; null: its words were erased."""
    answer: str | None
    """The agent's words, or why there is no answer: data, never markup. null: none yet, or erased."""


class QuestionAnswers(ApiSchema):
    """The questions at a gate."""

    items: list[QuestionAnswer]
    """All of them, the oldest first."""


@router.get("/{int:gate_id}/questions", response=QuestionAnswers, summary="List questions to the agent")
def list_questions(request: HttpRequest, gate_id: GateId) -> HttpResponse:
    """Return what people have asked the agent at this gate. A program answers those that are `asked`."""
    return answer_json(QuestionAnswers(items=_read_questions(gate_or_404(request, gate_id))))


@router.post("/{int:gate_id}/questions", auth=DECIDE, response={201: QuestionAnswer}, summary="Ask the agent")
def ask_agent(request: HttpRequest, gate_id: GateId, order: AskAgent, key: Key) -> HttpResponse:
    """Ask the agent a question. The gate stays open, and may be decided before the answer comes."""
    gate, reader = gate_or_404(request, gate_id), reader_of(request)

    def do() -> HttpResponse:
        asked = questions.ask(gate, by=reader, text=order.text, key=own_key(request, key) or AgentQuestion.new_key())
        return answer_json(_read_question(gate, asked.pk), http_status=201)

    return keep_answer(request, key, do)


@router.post("/{int:gate_id}/answers", auth=WORK, response={201: QuestionAnswer}, summary="Answer a question")
def answer_question(request: HttpRequest, gate_id: GateId, order: SendAnswer, key: Key) -> HttpResponse:
    """Answer a question at your gate. Each question takes one answer."""
    gate = gate_or_404(request, gate_id)
    reach.to_work(gate.run_id, by=reader_of(request))
    found = AgentQuestion.objects.filter(gate=gate, pk=order.question).first()
    if found is None:
        raise Http404("No such question")

    def do() -> HttpResponse:
        found.gate = gate
        if not questions.end(found, order.text, by=actor_of(request), failed=order.failed):
            raise WorkRefused("This question has an answer already.")
        return answer_json(_read_question(gate, order.question), http_status=201)

    return do_once(request, key, do)


def _read_question(gate: Gate, number: int) -> QuestionAnswer:
    return next(answer for answer in _read_questions(gate) if answer.id == number)


def _read_questions(gate: Gate) -> list[QuestionAnswer]:
    events = thread.questions_of(gate)
    answers = {event.question: event for event in events if event.by_agent}
    return [
        QuestionAnswer(
            id=event.question, gate=gate.pk, by=event.who, at=event.at, text=event.text,
            status=_status(answers.get(event.question)),
            answer=answers[event.question].text if event.question in answers else None,
        )
        for event in events
        if event.kind == questions.ASKED
    ]  # fmt: skip


def _status(answered: thread.ThreadEvent | None) -> str:
    if answered is None:
        return AgentQuestion.Status.ASKED
    return AgentQuestion.Status.FAILED if answered.kind == questions.FAILED else AgentQuestion.Status.ANSWERED
