"""Deciding several gates of one kind by one order, with a result for each."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Annotated, Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.access import reader_of
from agents.api.protocol import (
    ApiSchema,
    Key,
    answer_json,
    confirmation_of,
    keep_answer,
    one_of,
    optional_one_of,
    own_key,
    require_scope,
)
from agents.api.runs.moves import Order
from agents.models import TokenScope
from approvals.decisions.bulk import orders
from approvals.decisions.bulk.carrying_out import carry_out
from approvals.decisions.bulk.orders import BulkChoice, BulkProgress, BulkSubmission
from approvals.decisions.decision_impact import LENGTH
from approvals.policy.bulk import MOST

from .gates import DIGEST

router = Router(tags=["gates"], auth=require_scope(TokenScope.DECIDE))


class GateToDecide(Order):
    """One gate of a bulk decision, as you read it."""

    example: ClassVar = {"gate": 42, "seen": DIGEST, "shown": ""}

    gate: int = Field(ge=1, le=2**63 - 1)
    """The gate's number."""
    seen: str = Field(pattern="^[0-9a-f]{64}$")
    """The `digest` of the gate as you read it. If the proposal has changed since, this gate is refused."""
    shown: str = Field("", pattern=f"^([0-9a-f]{{{LENGTH}}})*$", max_length=2_000 * LENGTH)
    """The `shown` of the gate's impacts for this decision; empty: record it whatever it does."""


class DecideTogether(Order):
    """One person's one verdict on several gates of one kind."""

    example: ClassVar = {
        "verdict": "approve", "comment": "Checked against the ledger.", "then": "stop", "second_look": True,
    }  # fmt: skip

    verdict: Annotated[str, one_of(("approve", "reject"))]
    """The verdict on each of them."""
    gates: list[GateToDecide] = Field(min_length=1, max_length=MOST)
    """The gates, each once: of the same agent, step and policy, asking about the same tools."""
    comment: str
    """The reason. It is recorded with each decision; after a rejection each agent reads it."""
    then: str = Field("", json_schema_extra=optional_one_of("stop", "back"))
    """Required for a rejection: stop the runs, or send each back to the step that its gate names."""
    second_look: bool = False
    """Whether you looked at each of them. An approval needs it (422 without)."""


class GateResult(ApiSchema):
    """The result for one gate."""

    example: ClassVar = {"gate": 42, "state": "decided", "decision": 311, "status": "decided", "code": "", "detail": ""}

    gate: int
    """The gate's number."""
    state: Annotated[str, one_of(("decided", "refused", "waiting"))]
    """decided: your decision is recorded. refused: it is not, and `code` says why. waiting: not yet."""
    decision: int | None
    """The decision's number; null if there is none."""
    status: str
    """The gate's status now; empty if you see no such gate. open: others must approve too."""
    code: str
    """Why it was refused: as a decision of its own would be, `not_in_bulk` or `not_found`."""
    detail: str
    """The same for a person."""


class DecidedTogether(ApiSchema):
    """A bulk decision, gate by gate."""

    example: ClassVar = {"id": 7, "decided": 1, "refused": 0, "finished_at": "2026-03-02T09:21:40.555012Z"}

    id: int
    """Its number; `bulk` in the events of its decisions."""
    decided: int
    """How many gates it decided."""
    refused: int
    """How many it did not."""
    finished_at: datetime | None
    """When it came to its end."""
    results: list[GateResult]
    """The results, in the order sent."""


@router.post("/decisions", response={201: DecidedTogether}, summary="Decide several gates")
def decide_gates(request: HttpRequest, order: DecideTogether, key: Key) -> HttpResponse:
    """Decide several gates of one kind. Each is decided or refused by itself; none is decided twice.

    Refused is what the policy does not let people decide together (`not_in_bulk`), what you do not see (`not_found`),
    and whatever a decision of that gate alone would be refused for.
    """
    reader = reader_of(request)

    def say() -> HttpResponse:
        sent = BulkSubmission(
            key=own_key(request, key) or secrets.token_hex(16),
            verdict=order.verdict,
            gates=[BulkChoice(gate.gate, bytes.fromhex(gate.seen), gate.shown) for gate in order.gates],
            comment=order.comment,
            then=order.then,
            second_look=order.second_look,
        )
        taken = orders.take(sent, by=reader)
        carry_out(taken, by=reader, confirmed=confirmation_of(request))
        taken.refresh_from_db()
        found = orders.progress(taken, reader=reader)
        return answer_json(DecidedTogether.model_validate(_progress_members(found)), http_status=201)

    return keep_answer(request, key, say)


def _progress_members(progress: BulkProgress) -> dict[str, Any]:
    results = [
        {
            "gate": result.item.gate_id,
            "state": result.state,
            "decision": result.decision.pk if result.decision else None,
            "status": result.gate.status if result.gate else "",
            "code": result.item.code,
            "detail": result.item.words,
        }
        for result in progress.results
    ]
    return {
        "id": progress.order.pk,
        "decided": progress.decided,
        "refused": progress.refused,
        "finished_at": progress.order.finished_at,
        "results": results,
    }
