"""Undoing one's decision while the gate's policy lets it be undone."""

from __future__ import annotations

from typing import ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.access import reader_of
from agents.api.protocol import GateId, Key, answer_json, do_once, require_scope
from agents.api.runs.moves import Order
from agents.models import TokenScope
from approvals.decisions.undoing.take_back import recorded, take_back_within
from approvals.views.access import gate_or_404

from .decisions import Decided

router = Router(tags=["gates"], auth=require_scope(TokenScope.DECIDE))


class UndoOrder(Order):
    """The decision to undo."""

    example: ClassVar = {"decision": 311}

    decision: int | None = Field(None, ge=1, lt=2**63)
    """Your decision's number. Another one, or one that counts no more, is not undone; null: the one that counts."""


@router.post("/{int:gate_id}/undos", response={201: Decided}, summary="Undo a decision")
def undo_decision(request: HttpRequest, gate_id: GateId, undo: UndoOrder, key: Key) -> HttpResponse:
    """Take your own decision back while the gate is still open, so that it counts no more.

    Refused where the policy has no undo window, and once the gate is closed.
    """
    gate, reader = gate_or_404(request, gate_id), reader_of(request)

    def say() -> HttpResponse:
        taken = take_back_within(gate, by=reader, decision=undo.decision)
        now = gate_or_404(request, gate_id)
        values = {"id": taken.pk, "verdict": taken.verdict, "actions": taken.by_action, "gate": now}
        undone = Decided.model_validate(values, context={"standing": now.standing(), "reader": reader})
        return answer_json(undone, http_status=201)

    with recorded(gate, by=reader):
        return do_once(request, key, say)
