"""Withdrawing a gate, by the program that asks: this is no rejection, and it ends the gate's run."""

from __future__ import annotations

from typing import ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.access import reader_of
from agents.api.gates.outcomes import OutcomeAnswer, answer_outcome
from agents.api.protocol import GateId, Key, actor_of, do_once, require_scope, token_of
from agents.api.runs.moves import Order
from agents.models import TokenScope
from agents.remote import reach
from agents.text import one_line
from agents.work_errors import WorkNotAllowed, WorkRefused
from approvals.decisions.lost_race import lost_race
from approvals.errors import GateExpired
from approvals.gates import closing
from approvals.gates.reading import read
from approvals.models import Gate
from approvals.views.access import gate_or_404

router = Router(tags=["gates"], auth=require_scope(TokenScope.WORK))


class Withdrawal(Order):
    """Withdraw a gate."""

    example: ClassVar = {"reason": "The invoice was cancelled."}

    reason: str = Field("", max_length=300)
    """The reason, for people; the gate shows it."""


@router.post("/{int:gate_id}/withdrawals", response={201: OutcomeAnswer}, summary="Withdraw a gate")
def withdraw_gate(request: HttpRequest, gate_id: GateId, order: Withdrawal, key: Key) -> HttpResponse:
    """Withdraw your gate. Nothing of it runs, and its run is cancelled: claim the run to end it at once."""
    gate = gate_or_404(request, gate_id)
    _check_own(request, gate)

    def do() -> HttpResponse:
        by, why = actor_of(request), one_line(order.reason, 300)
        # The name comes first, so that nobody takes a program's sentence for Holdpoint's own.
        reason = f"{by.name or by.id} withdrew it: “{why}”" if why else f"{by.name or by.id} withdrew it."
        if closing.withdraw(gate, by=by, reason=reason) is None:
            now = read(gate.pk)
            raise lost_race(now, bytes(now.proposal.digest)) or GateExpired
        answer = answer_outcome(gate_or_404(request, gate_id))
        answer.status_code = 201
        return answer

    return do_once(request, key, do)


def _check_own(request: HttpRequest, gate: Gate) -> None:
    """Check that the gate is the program's own. Raises Http404, NotExternal, WorkNotAllowed and WorkRefused."""
    reach.to_work(gate.run_id, by=reader_of(request))
    token = token_of(request)
    if not (token and token.agent) and gate.run.started_by_id != reader_of(request).pk:
        raise WorkNotAllowed(
            "Only the program that asks takes a gate back, or whoever started its run; cancel the run by "
            f"POST /api/runs/{gate.run_id}/cancellations."
        )
    if gate.kind != Gate.Kind.REVIEW:
        raise WorkRefused("This gate asks people how to go on after a fault. Only their answer closes it.")
