"""The receipt of a gate: what ran under it, when, and with what result."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from agents.api.protocol import GateId, answer, gate_page, needs, one_of
from agents.models import TokenScope
from agents.queries.access import reader_of
from approvals.models import Gate, Outcome
from approvals.presentation.gate_facts.fate_words import RESULTS
from approvals.presentation.gate_page.page import GatePage
from approvals.presentation.gate_page.receipt import ReceiptLine
from approvals.views.access import shown_or_404

from .gates import DIGEST, STATE_WORDS

router = Router(tags=["gates"], auth=needs(TokenScope.SEE))


class ReceiptEffect(Schema):
    """One effect that was let run."""

    effect: str = Field(validation_alias="step", description="The effect's step.", examples=["pay"])
    title: str = Field(validation_alias="effect", description="The step's title.", examples=["Pay the refund"])
    action: str = Field(description="The action that it performs, by its id; empty: none of its own.", examples=["pay"])
    amount: str = Field(description="The action's pinned amounts; empty: none.", examples=["€120.00"])
    state: Annotated[str, one_of(tuple(RESULTS))] = Field(
        description=STATE_WORDS,
        examples=["done"],
    )
    key: str = Field(description="The idempotency key, by which the provider knows it; empty: none yet.", examples=[""])
    begun_at: datetime | None = Field(description="When it was last begun.", examples=["2026-03-02T09:21:41.104112Z"])
    ended_at: datetime | None = Field(description="When it ended.", examples=["2026-03-02T09:21:41.604112Z"])
    undone_at: datetime | None = Field(description="When it was undone.", examples=[None])
    attempts: int = Field(description="How often it was begun.", examples=[1])
    error: str = Field(
        description="Why it failed: data, never markup. Empty for those who do not see the run.", examples=[""]
    )
    returned: dict[str, str] = Field(
        description="The first values that it returned, by their places, with secrets masked; the provider's reference "
        "among them. None for those who do not see the run.",
        examples=[{"payment, id": "pay_31"}],
    )

    @staticmethod
    def resolve_action(line: ReceiptLine) -> str:
        return line.action.id if line.action else ""

    @staticmethod
    def resolve_key(line: ReceiptLine) -> str:
        return line.done.key if line.done else ""

    @staticmethod
    def resolve_begun_at(line: ReceiptLine) -> datetime | None:
        return line.done.begun_at if line.done else None

    @staticmethod
    def resolve_ended_at(line: ReceiptLine) -> datetime | None:
        return line.done.ended_at if line.done else None

    @staticmethod
    def resolve_undone_at(line: ReceiptLine) -> datetime | None:
        return line.done.undone_at if line.done else None

    @staticmethod
    def resolve_attempts(line: ReceiptLine) -> int:
        return line.done.attempts if line.done else 0

    @staticmethod
    def resolve_returned(line: ReceiptLine) -> dict[str, str]:
        return dict(line.returned)


class ReceiptVoterAnswer(Schema):
    """A person whose decision counted."""

    name: str = Field(description="Who decided.", examples=["Ann Okafor"])
    verdict: str = Field(description="Their verdict, in words.", examples=["Approved"])
    at: datetime = Field(description="When.", examples=["2026-03-02T09:21:40.555012Z"])
    seen: str = Field(description="The digest of the proposal that they saw, in hex.", examples=[DIGEST])


class NotRunAnswer(Schema):
    """Why it is late that nothing has begun."""

    code: str = Field(
        description="failed: the run did. gate: it waits for another gate. program: its program has not taken it up. "
        "no_worker: none serves its version. queued: other runs are before it. running: at an earlier step.",
        examples=["no_worker"],
    )
    words: str = Field(description="The same in words.", examples=["The run is in the queue, behind others."])
    gate: int | None = Field(description="The gate that it waits for.", examples=[None])


class ReceiptAnswer(Schema):
    """The end of a gate, and the fate of what it let run."""

    gate: int = Field(description="The gate.", examples=[42])
    url: str = Field(
        description="The page of its receipt.", examples=["https://holdpoint.example.com/gates/42/receipt/"]
    )
    status: Annotated[str, one_of(Gate.Status)] = Field(description="Whether it is still open.", examples=["decided"])
    kind: Annotated[str, one_of(Outcome.Kind)] | None = Field(
        description="How it ended; null while it is open.", examples=["approved"]
    )
    at: datetime | None = Field(description="When it ended.", examples=["2026-03-02T09:21:40.555012Z"])
    decided: list[ReceiptVoterAnswer] = Field(description="Whose decisions counted.")
    seen: str = Field(description="The digest of the proposal that was decided on, in hex.", examples=[DIGEST])
    to_run: str = Field(description="The digest of what may run, in hex; empty: nothing may.", examples=[DIGEST])
    effects: list[ReceiptEffect] = Field(description="What was let run, and what became of it.")
    not_run: NotRunAnswer | None = Field(
        description="Where people are told that nothing of it has begun: why; otherwise null.", examples=[None]
    )


@router.get("/{int:gate_id}/receipt", response=ReceiptAnswer, summary="Read a receipt")
def get_receipt(request: HttpRequest, gate_id: GateId) -> HttpResponse:
    """Return what ran under a gate, when, with what result, and who decided it by which digests."""
    page = GatePage(shown_or_404(request, gate_id), reader_of(request))
    gate, made = page.gate, page.receipt
    head = {"gate": gate.pk, "url": f"{gate_page(gate.pk)}receipt/", "status": gate.status}
    if made is None:
        nothing: dict[str, Any] = {
            "kind": None,
            "at": None,
            "decided": [],
            "seen": "",
            "to_run": "",
            "effects": [],
            "not_run": None,
        }
        return answer(ReceiptAnswer.model_validate({**head, **nothing}))
    told = {
        "kind": made.ending.kind, "at": made.ending.at, "decided": made.voters, "seen": made.seen,
        "to_run": made.to_run, "effects": made.lines, "not_run": made.not_run,
    }  # fmt: skip
    return answer(ReceiptAnswer.model_validate({**head, **told}))
