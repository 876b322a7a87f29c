"""Deciding several gates of one kind by one order, with a result for each."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from agents.api.protocol import Key, answer, confirmation_of, kept, needs, one_of, optional, own
from agents.api.runs.moves import Order
from agents.models import TokenScope
from agents.queries.access import reader_of
from approvals.decisions.bulk import orders
from approvals.decisions.bulk.carrying_out import carry_out
from approvals.decisions.bulk.orders import BulkChoice, BulkProgress, BulkSubmission
from approvals.decisions.decision_impact import LENGTH
from approvals.policy.bulk import MOST

from .gates import DIGEST

router = Router(tags=["gates"], auth=needs(TokenScope.DECIDE))


class GateToDecide(Order):
    """One gate of a bulk decision, as you read it."""

    gate: int = Field(description="The gate's number.", ge=1, le=2**63 - 1, examples=[42])
    seen: str = Field(
        description="The `digest` of the gate as you read it. If the proposal has changed since, this gate is refused.",
        pattern="^[0-9a-f]{64}$",
        examples=[DIGEST],
    )
    shown: str = Field(
        "",
        description="The `shown` of the gate's impacts for this decision; empty: record it whatever it does.",
        pattern=f"^([0-9a-f]{{{LENGTH}}})*$",
        max_length=2_000 * LENGTH,
        examples=[""],
    )


class DecideTogether(Order):
    """One person's one verdict on several gates of one kind."""

    verdict: Annotated[str, one_of(("approve", "reject"))] = Field(
        description="The verdict on each of them.", examples=["approve"]
    )
    gates: list[GateToDecide] = Field(
        description="The gates, each once: of the same agent, step and policy, asking about the same tools.",
        min_length=1,
        max_length=MOST,
    )
    comment: str = Field(
        description="The reason. It is recorded with each decision; after a rejection each agent reads it.",
        examples=["Checked against the ledger."],
    )
    then: str = Field(
        "",
        description="Required for a rejection: stop the runs, or send each back to the step that its gate names.",
        examples=["stop"],
        json_schema_extra=optional("stop", "back"),
    )
    second_look: bool = Field(
        False,
        description="Whether you looked at each of them. An approval needs it (422 without).",
        examples=[True],
    )


class GateResult(Schema):
    """The result for one gate."""

    gate: int = Field(description="The gate's number.", examples=[42])
    state: Annotated[str, one_of(("decided", "refused", "waiting"))] = Field(
        description="decided: your decision is recorded. refused: it is not, and `code` says why. waiting: not yet.",
        examples=["decided"],
    )
    decision: int | None = Field(description="The decision's number; null if there is none.", examples=[311])
    status: str = Field(
        description="The gate's status now; empty if you see no such gate. open: others must approve too.",
        examples=["decided"],
    )
    code: str = Field(
        description="Why it was refused: as a decision of its own would be, `not_in_bulk` or `not_found`.",
        examples=[""],
    )
    detail: str = Field(description="The same for a person.", examples=[""])


class DecidedTogether(Schema):
    """A bulk decision, gate by gate."""

    id: int = Field(description="Its number; `bulk` in the events of its decisions.", examples=[7])
    decided: int = Field(description="How many gates it decided.", examples=[1])
    refused: int = Field(description="How many it did not.", examples=[0])
    finished_at: datetime | None = Field(
        description="When it came to its end.", examples=["2026-03-02T09:21:40.555012Z"]
    )
    results: list[GateResult] = Field(description="The results, in the order sent.")


@router.post("/decisions", response={201: DecidedTogether}, summary="Decide several gates")
def decide_gates(request: HttpRequest, order: DecideTogether, key: Key) -> HttpResponse:
    """Decide several gates of one kind. Each is decided or refused by itself; none is decided twice.

    Refused is what the policy does not let people decide together (`not_in_bulk`), what you do not see (`not_found`),
    and whatever a decision of that gate alone would be refused for.
    """
    reader = reader_of(request)

    def say() -> HttpResponse:
        sent = BulkSubmission(
            key=own(request, key) or secrets.token_hex(16),
            verdict=order.verdict,
            gates=[BulkChoice(each.gate, bytes.fromhex(each.seen), each.shown) for each in order.gates],
            comment=order.comment,
            then=order.then,
            second_look=order.second_look,
        )
        taken = orders.take(sent, by=reader)
        carry_out(taken, by=reader, confirmed=confirmation_of(request))
        taken.refresh_from_db()
        found = orders.progress(taken, reader=reader)
        return answer(DecidedTogether.model_validate(_told(found)), http_status=201)

    return kept(request, key, say)


def _told(found: BulkProgress) -> dict[str, Any]:
    results = [
        {
            "gate": each.item.gate_id,
            "state": each.state,
            "decision": each.decision.pk if each.decision else None,
            "status": each.gate.status if each.gate else "",
            "code": each.item.code,
            "detail": each.item.words,
        }
        for each in found.results
    ]
    return {
        "id": found.order.pk,
        "decided": found.decided,
        "refused": found.refused,
        "finished_at": found.order.finished_at,
        "results": results,
    }
