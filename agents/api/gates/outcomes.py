"""The outcome of a gate, for the program that waits for it: the exact edits and the grants."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from django.db.models import F, QuerySet, prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents.api.protocol import ApiSchema, GateId, exact_json, gate_page, one_of, require_scope, token_of
from agents.api.protocol.waiting import AGAIN, AWAITS, LONGEST
from agents.models import Effect, TokenScope
from agents.remote import lost_programs
from approvals.models import Gate, Outcome
from approvals.views.access import gate_or_404
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement
from checkpoints.values import patch
from checkpoints.values.canonical_json import encode_canonical

from .gates import Ending, encode_ending

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
        lost_programs.listens(gate.run, token_of(request))
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
    return exact_json.answer_json(head, outcome=encode_ending(gate), edits=encode_canonical(_edits(gate, outcome)))


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
