"""What each choice at a gate would do, as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from approvals.impact import Impact
from approvals.models import Gate
from approvals.presentation.foretold import Foretold
from approvals.views.access import gate_or_404

from .addresses import GateId
from .exact import answer
from .impacts import ImpactAnswer

router = Router(tags=["gates"])


class ChoiceImpact(Schema):
    """One choice, and what it would do if nothing fails."""

    choice: str = Field(description="approve, stop, back or answer.", examples=["back"])
    of: str = Field(description="The step of back, the answer's id of answer; else empty.", examples=["propose"])
    impact: ImpactAnswer = Field(description="What it would do.")


class ChoiceImpacts(Schema):
    """Every choice that stands open."""

    items: list[ChoiceImpact] = Field(description="The choices; none where the gate is closed.")


@router.get(
    "/{int:gate_id}/impacts", response=ChoiceImpacts, operation_id="get_gate_impacts", summary="Foretell a gate"
)
def of_gate(request: HttpRequest, gate_id: GateId) -> HttpResponse:
    """What each choice would do: what runs, may run, is kept, is undone, may be undone, and cannot be undone."""
    gate = gate_or_404(request, gate_id)
    told = [] if gate.status != Gate.Status.OPEN else choices_of(gate)
    items = [ChoiceImpact(choice=name, of=of, impact=ImpactAnswer.of(impact)) for name, of, impact in told]
    return answer(ChoiceImpacts(items=items))


def choices_of(gate: Gate) -> Iterator[tuple[str, str, Impact]]:
    """(choice, what of, impact), in the order in which the gate's page offers them."""
    proposal = gate.standing()
    card = proposal.card
    future = Foretold(gate, card, proposal.state_patch)
    if card.question is None:
        yield "approve", "", future.approve()
    for choice in card.question["choices"] if card.question else []:
        recovers = gate.kind == Gate.Kind.RECOVERY
        impact = future.answer(choice["id"]) if recovers else future.answered(grants=choice.get("grants", False))
        if impact is not None:
            yield "answer", choice["id"], impact
    if gate.kind == Gate.Kind.REVIEW:
        yield "stop", "", future.stop()
        for step in reversed(card.back_to):
            yield "back", step, future.back(step)
