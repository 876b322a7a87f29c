"""Signals to runs from outside, and waking a run that waits for a time."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router
from pydantic import Field, StringConstraints

from agents.access import run_or_404
from agents.api.protocol.answers import Page, Paging, answer_json, splice_json
from agents.api.protocol.auth import actor_of, require_scope, token_of
from agents.api.protocol.idempotency_keys import Key, do_once
from agents.api.protocol.schemas import ApiSchema, Order, RunId
from agents.api.protocol.waiting import AWAITS, LONGEST
from agents.api.runs.moves import run_to_order
from agents.api.runs.runs import RunSummary, summed_up
from agents.models import Signal, TokenScope
from agents.waits import signals, step_waits
from agents.work_errors import WorkNotAllowed
from approvals.schema import redact
from approvals.views.access import reader_of
from checkpoints.access.permissions import START_RUN, say_missing_permission
from checkpoints.actors import of_user
from checkpoints.models import Run
from checkpoints.values.canonical_json import decode_canonical, encode_canonical

VALUES = 100  # of an answer
ANSWER = 4_000_000  # bytes of its values, after which no more are added
router = Router(tags=["runs"], auth=require_scope(TokenScope.READ))
ORDER, SIGNAL = require_scope(TokenScope.ORDER), require_scope(TokenScope.SIGNAL)
SIGNALS = "/{int:run_id}/signals"
NAME_WORDS = "One of the signals that the run's agent declares."
SignalName = Annotated[str, Path(description=NAME_WORDS, examples=["go"], max_length=100)]
OwnKey = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{0,200}$")]


class SignalOrder(Order):
    """Send a signal."""

    example: ClassVar = {"value": {"by": "ops"}, "key": "deploy-812"}

    value: Any = None
    """Its value, as the agent's schema for this signal says."""
    key: OwnKey = ""
    """Your own name for this signal: under the same one it is kept once, whoever sends it again. Empty: each request is
    a signal of its own."""


class SignalAnswer(ApiSchema):
    """A signal that the run has."""

    example: ClassVar = {
        "id": 5, "run": 7, "name": "go", "key": "deploy-812", "by": "agent:deployer",
        "at": "2026-03-02T09:15:04.120931Z",
    }  # fmt: skip

    id: int
    """Its number."""
    run: int = Field(validation_alias="run_id")
    """The run's number."""
    name: str
    """Its name."""
    key: str
    """Its sender's name for it."""
    by: str
    """Who sent it."""
    at: datetime
    """When it came."""


SENT = {201: SignalAnswer, 200: SignalAnswer}


class SignalPage(Page):
    """Some of a run's signals, newest first."""

    items: list[SignalAnswer]
    """The signals, without their values."""


@router.get(SIGNALS, response=SignalPage, summary="List a run's signals")
def list_signals(request: HttpRequest, run_id: RunId, asked: Query[Paging]) -> HttpResponse:
    """Return the signals that a run of your teams was sent, newest first."""
    found = Signal.objects.filter(run=run_or_404(request, run_id), pk__lt=asked.before).order_by("-pk")
    return SignalPage.answer_rows(found, asked)


class SignalQuery(ApiSchema):
    """The place after which to read, and the time to wait for a signal."""

    example: ClassVar = {"after": 5, "wait": 25}

    after: int = Field(0, ge=0, lt=2**63)
    """The number of the last signal that you have read."""
    wait: float = Field(0, ge=0, le=LONGEST)
    """How many seconds to wait while there is none."""


class SentValue(SignalAnswer):
    """A signal with its value."""

    example: ClassVar = {"masked": [], "value": {"by": "ops"}}

    masked: list[str]
    """JSON Pointers to the secrets in the value, each of which a placeholder replaces; none for a token of the run's
    agent, which gets them."""
    value: Any
    """Its value, as canonical JSON."""


class SentValues(ApiSchema):
    """The signals of one name after the given one, oldest first: a hundred at most, and fewer if they are large."""

    items: list[SentValue]
    """The signals."""


@router.get(SIGNALS + "/{name}", response=SentValues, summary="Read signals, or wait for one")
def read_signals(request: HttpRequest, run_id: RunId, name: SignalName, asked: Query[SignalQuery]) -> HttpResponse:
    """Return the run's signals of this name with their values, oldest first.

    While there is none after `after`, it answers after `wait` seconds at the latest, or once the run has ended. A
    program that keeps the number of the last one it read gets each once.
    """
    run = run_or_404(request, run_id)
    token = token_of(request)  # nothing is hidden from the run's own agent
    veil = redact.OPEN if token and token.agent == run.plan.agent else signals.veil(run, name)
    items = [
        splice_json(SignalAnswer.from_orm(signal), masked=masked, value=value)
        for signal in signals.first_after(run, name, asked.after, most=VALUES, size=ANSWER)
        for masked, value in [_shown(veil, bytes(signal.value))]
    ]
    response = HttpResponse(b'{"items":[' + b",".join(items) + b"]}", content_type="application/json")
    if not items and run.status in Run.LIVE:
        response[AWAITS] = f"signals.{run.pk}"
    return response


def _shown(veil: redact.Redaction, value: bytes) -> tuple[bytes, bytes]:
    """Return the pointers to what is hidden in a value, and the value without it, as canonical JSON."""
    if not veil:
        return b"[]", value
    content = decode_canonical(value)
    return encode_canonical(list(veil.places(content))), encode_canonical(veil.masked(content, named=True))


@router.post(SIGNALS + "/{name}", auth=SIGNAL, response=SENT, summary="Send a signal to a run")
def send_signal(request: HttpRequest, run_id: RunId, name: SignalName, order: SignalOrder, key: Key) -> HttpResponse:
    """Keep a signal for the run, and wake it if it waits for this. Answers 200 for one that it has already."""
    run = run_or_404(request, run_id)
    if not signals.may_send(run, reader_of(request)):
        raise WorkNotAllowed(say_missing_permission(reader_of(request), START_RUN, run.team))

    def do() -> HttpResponse:
        own, by, owner = order.key or uuid.uuid4().hex, actor_of(request), of_user(reader_of(request))
        sent, new = signals.send(run, name, order.value, key=own, by=by, owner=owner)
        return answer_json(SignalAnswer.from_orm(sent), http_status=201 if new else 200)

    return do_once(request, key, do)


@router.post("/{int:run_id}/wakes", auth=ORDER, response=RunSummary, summary="Wake a sleeping run")
def wake_run(request: HttpRequest, run_id: RunId, key: Key) -> HttpResponse:
    """End the time that the run waits for now, so that it goes on at once. 409 if it waits for none."""
    run = run_to_order(request, run_id)

    def end() -> HttpResponse:
        step_waits.wake_now(run, by=actor_of(request))
        return answer_json(summed_up(run))

    return do_once(request, key, end)
