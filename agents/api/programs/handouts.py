"""Handing out the approval of a question, so that it counts once although nothing is performed under it here."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.access import reader_of
from agents.api.protocol import ApiSchema, GateId, Key, actor_of, answer_json, do_once, require_scope
from agents.api.protocol.idempotency_keys import free_key
from agents.api.runs.moves import Order
from agents.models import TokenScope
from agents.remote import reach
from agents.remote.hand_out import hand_out
from approvals.views.access import gate_or_404

router = Router(tags=["gates"], auth=require_scope(TokenScope.WORK))


class Handout(Order):
    """Take an approval."""

    example: ClassVar = {"to": "toolu_01", "frees": "deploy"}

    to: str = Field(min_length=1, max_length=200)
    """Your name for the call that it is for. Under this name it is read again."""  # fmt: skip
    frees: str = Field("", max_length=200)
    """The `Idempotency-Key` under which you posted the gate, if the next request under it is another question: it opens
    a gate of its own."""


class HandoutAnswer(ApiSchema):
    """The holder of an approval."""

    example: ClassVar = {"at": "2026-03-02T14:02:41.104112Z", "yours": True, "first": True}

    at: datetime
    """When it was handed out."""
    yours: bool
    """Whether to the call that you named; otherwise another has it."""
    first: bool
    """Whether just now, by this request."""


@router.post("/{int:gate_id}/handouts", response={201: HandoutAnswer}, summary="Take an approval")
def take_approval(request: HttpRequest, gate_id: GateId, order: Handout, key: Key) -> HttpResponse:
    """Take the approval at a gate that you posted with `ask_only`: it is handed out to one call, once.

    Send this before you act by it. 409: nobody has approved, or a run performs what was approved.
    """
    gate = gate_or_404(request, gate_id)
    reach.to_work(gate.run_id, by=reader_of(request))

    def do() -> HttpResponse:
        handed = hand_out(gate.pk, to=order.to, by=actor_of(request))
        if order.frees:
            free_key(request, order.frees, location=f"/api/gates/{gate.pk}")
        return answer_json(HandoutAnswer(at=handed.at, yours=handed.yours, first=handed.first), http_status=201)

    return do_once(request, key, do)
