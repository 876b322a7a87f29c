"""The outcome of a gate, for the program that waits for it: its exact edits and grants; and the receipt of a gate."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from django.db.models import F, QuerySet, prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import BeforeValidator, ConfigDict, Field

from agents.api.gates.gates import DIGEST, STATE_WORDS, Ending, encode_ending
from agents.api.protocol.answers import answer_json
from agents.api.protocol.auth import require_scope, token_of
from agents.api.protocol.schemas import ApiSchema, GateId, gate_page, one_of
from agents.api.protocol.waiting import AGAIN, AWAITS, LONGEST
from agents.models import Effect, TokenScope
from agents.remote import reach
from approvals.models import Gate, Outcome
from approvals.presentation.gate_facts.outcomes import RESULTS
from approvals.presentation.gate_page.page import GatePage
from approvals.views.access import gate_or_404, reader_of, shown_or_404
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement
from checkpoints.values import patch
from checkpoints.values.canonical_json import encode_canonical

router = Router(tags=["gates"], auth=require_scope(TokenScope.SEE))


class Granted(ApiSchema):
    """The right to do one effect once."""

    example: ClassVar = {"id": 5, "effect": "wire", "action": "wire", "used": False}

    id: int
    """The grant's number."""
    effect: str
    """The effect's step."""
    action: str
    """The action that it performs."""
    used: bool
    """Whether an effect was begun with it."""


class OutcomeHead(ApiSchema):
    """The status and the grants of a gate."""

    example: ClassVar = {
        "gate": 42, "url": "https://holdpoint.example.com/gates/42/", "run": 7, "status": "decided",
        "run_status": "queued", "version": 2,
    }  # fmt: skip

    gate: int
    """The gate."""
    url: str
    """The gate's page."""
    run: int
    """Its run."""
    status: Annotated[str, one_of(Gate.Status)]
    """Whether it is still open."""
    run_status: Annotated[str, one_of(Run.Status)]
    """The run's status. A run that is queued although this gate is open goes on: claim it."""
    version: int
    """Rises with each change of the gate."""
    grants: list[Granted]
    """What was approved: a grant for each effect."""


class OutcomeAnswer(OutcomeHead):
    """The outcome of a gate, null while it is open."""

    example: ClassVar = {"edits": {"wire": [{"op": "replace", "path": "/amount", "value": "100.00"}]}}

    outcome: Ending | None
    """How it ended, as in the gate itself; null while it is open."""
    edits: dict[str, list[dict[str, Any]]]
    """People's changes of each action's arguments, by its id: a JSON Patch on the first proposal."""


class OutcomeQuery(ApiSchema):
    """The time to wait for the outcome."""

    example: ClassVar = {"wait": 25}

    wait: float = Field(0, ge=0, le=LONGEST)
    """How many seconds to wait for the outcome while the gate is open."""


@router.get("/{int:gate_id}/outcome", response=OutcomeAnswer, summary="Read an outcome, or wait for it")
def get_outcome(request: HttpRequest, gate_id: GateId, asked: Query[OutcomeQuery]) -> HttpResponse:
    """Return the outcome of the gate, with the final arguments.

    While the gate is open, it answers after `wait` seconds at the latest.
    """
    gate = gate_or_404(request, gate_id)
    # Noted once a request: no wait is so long that its program counts as lost meanwhile.
    if not getattr(request, "scope", {}).get(AGAIN):
        reach.listens(gate.run, token_of(request))
    answer = answer_outcome(gate)
    if gate.status == Gate.Status.OPEN:
        answer[AWAITS] = f"gate.{gate.pk}"
    return answer


def answer_outcome(gate: Gate) -> HttpResponse:
    """Answer with the outcome of the gate, or that it is open."""
    outcome: Outcome | None = getattr(gate, "outcome", None)
    if outcome is not None:
        prefetch_related_objects([outcome], "grants")
    head = OutcomeHead(
        gate=gate.pk, url=gate_page(gate.pk), run=gate.run_id, status=gate.status, run_status=gate.run.status,
        version=gate.version, grants=_grants(outcome),
    )  # fmt: skip
    return answer_json(head, outcome=encode_ending(gate), edits=encode_canonical(_edits(gate, outcome)))


def _grants(outcome: Outcome | None) -> list[Granted]:
    if outcome is None:
        return []
    grants = sorted(outcome.grants.all(), key=lambda grant: grant.pk)
    used = {effect.grant_id for effect in _begun([grant.pk for grant in grants])} if grants else set()
    return [Granted(id=grant.pk, effect=grant.effect, action=grant.action, used=grant.pk in used) for grant in grants]


@prepared_statement
def _begun(grants: Any) -> QuerySet[Effect]:
    return Effect.objects.filter(OneOf(F("grant"), grants)).only("grant")


def _edits(gate: Gate, outcome: Outcome | None) -> dict[str, Any]:
    """Return what people changed, by action, with secrets masked."""
    if outcome is None:
        return {}
    found = {}
    for action in outcome.proposal.card.actions:
        before = gate.asked.action(action.id)
        if before is not None and (ops := patch.diff(before.arguments, action.arguments)):
            found[action.id] = action.redaction.patch(ops)
    return found


receipts = Router(tags=["gates"], auth=require_scope(TokenScope.SEE))


class ReceiptEffect(ApiSchema):
    """One effect that was let run."""

    example: ClassVar = {
        "effect": "pay", "title": "Pay the refund", "action": "pay", "amount": "€120.00", "key": "",
        "begun_at": "2026-03-02T09:21:41.104112Z", "ended_at": "2026-03-02T09:21:41.604112Z", "undone_at": None,
        "attempts": 1, "error": "", "returned": {"payment, id": "pay_31"},
    }  # fmt: skip

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)  # no answer is without a member

    effect: str = Field(validation_alias="step")
    """The effect's step."""
    title: str = Field(validation_alias="effect")
    """The step's title."""
    action: str = Field(default_factory=str, validation_alias="action.id")
    """The action that it performs, by its id; empty: none of its own."""
    amount: str
    """The action's pinned amounts; empty: none."""
    state: Annotated[str, one_of(tuple(RESULTS))] = Field(description=STATE_WORDS, examples=["done"])
    key: str = Field(default_factory=str, validation_alias="done.key")
    """The idempotency key, by which the provider knows it; empty: none yet."""
    begun_at: datetime | None = Field(default_factory=lambda: None, validation_alias="done.begun_at")
    """When it was last begun."""
    ended_at: datetime | None = Field(default_factory=lambda: None, validation_alias="done.ended_at")
    """When it ended."""
    undone_at: datetime | None = Field(default_factory=lambda: None, validation_alias="done.undone_at")
    """When it was undone."""
    attempts: int = Field(default_factory=int, validation_alias="done.attempts")
    """How often it was begun."""
    error: str
    """Why it failed: data, never markup. Empty for those who do not see the run."""
    returned: Annotated[dict[str, str], BeforeValidator(dict)]
    """The first values that it returned, by their places, with secrets masked; the provider's reference among them.
    None for those who do not see the run."""


class ReceiptVoterAnswer(ApiSchema):
    """A person whose decision counted."""

    example: ClassVar = {
        "name": "Ann Okafor", "verdict": "Approved", "at": "2026-03-02T09:21:40.555012Z", "seen": DIGEST,
    }  # fmt: skip

    name: str
    """Who decided."""
    verdict: str
    """Their verdict, in words."""
    at: datetime
    """When."""
    seen: str
    """The digest of the proposal that they saw, in hex."""


class NotRunAnswer(ApiSchema):
    """Why it is late that nothing has begun."""

    example: ClassVar = {"code": "no_worker", "words": "The run is in the queue, behind others.", "gate": None}

    code: str
    """failed: the run did. gate: it waits for another gate. program: its program has not taken it up. no_worker: none
    serves its version. queued: other runs are before it. running: at an earlier step."""
    words: str
    """The same in words."""
    gate: int | None
    """The gate that it waits for."""


class ReceiptAnswer(ApiSchema):
    """The end of a gate, and the fate of what it let run."""

    example: ClassVar = {
        "gate": 42, "url": "https://holdpoint.example.com/gates/42/receipt/", "status": "decided", "kind": "approved",
        "at": "2026-03-02T09:21:40.555012Z", "seen": DIGEST, "to_run": DIGEST, "not_run": None,
    }  # fmt: skip

    gate: int
    """The gate."""
    url: str
    """The page of its receipt."""
    status: Annotated[str, one_of(Gate.Status)]
    """Whether it is still open."""
    kind: Annotated[str, one_of(Outcome.Kind)] | None
    """How it ended; null while it is open."""
    at: datetime | None
    """When it ended."""
    decided: list[ReceiptVoterAnswer]
    """Whose decisions counted."""
    seen: str
    """The digest of the proposal that was decided on, in hex."""
    to_run: str
    """The digest of what may run, in hex; empty: nothing may."""
    effects: list[ReceiptEffect]
    """What was let run, and what became of it."""
    not_run: NotRunAnswer | None
    """Where people are told that nothing of it has begun: why; otherwise null."""


@receipts.get("/{int:gate_id}/receipt", response=ReceiptAnswer, summary="Read a receipt")
def get_receipt(request: HttpRequest, gate_id: GateId) -> HttpResponse:
    """Return what ran under a gate, when, with what result, and who decided it by which digests."""
    page = GatePage(shown_or_404(request, gate_id), reader_of(request))
    gate, made = page.gate, page.receipt
    head = {"gate": gate.pk, "url": f"{gate_page(gate.pk)}receipt/", "status": gate.status}
    if made is None:
        nothing: dict[str, Any] = {
            "kind": None, "at": None, "decided": [], "seen": "", "to_run": "", "effects": [], "not_run": None,
        }  # fmt: skip
        return answer_json(ReceiptAnswer.model_validate({**head, **nothing}))
    values = {
        "kind": made.ending.kind, "at": made.ending.at, "decided": made.voters, "seen": made.seen,
        "to_run": made.to_run, "effects": made.lines, "not_run": made.not_run,
    }  # fmt: skip
    return answer_json(ReceiptAnswer.model_validate({**head, **values}))
