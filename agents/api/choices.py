"""What each choice at a gate would do, as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from agents.models import Scope
from agents.views.access import reader_of
from approvals import mixing
from approvals.following import Next, put
from approvals.impact import Impact
from approvals.models import Decision, Gate, Proposal
from approvals.presentation.foretold import Foretold
from approvals.reading import read
from approvals.saying import Said, back_to
from approvals.views.access import gate_or_404
from checkpoints import store

from .addresses import GateId
from .auth import needs
from .decisions import Decide, said_in
from .exact import answer
from .impacts import ImpactAnswer

router = Router(tags=["gates"], auth=needs(Scope.SEE))


class ChoiceImpact(Schema):
    """One choice, and what it would do if nothing fails."""

    choice: str = Field(description="approve, stop, back or answer.", examples=["back"])
    of: str = Field(description="The step of back, the answer's id of answer; else empty.", examples=["propose"])
    impact: ImpactAnswer = Field(description="What it would do.")


class ChoiceImpacts(Schema):
    """Every choice that stands open."""

    items: list[ChoiceImpact] = Field(description="The choices; none where the gate is closed.")


class WordImpact(Schema):
    """What one word would do if it were sent as a decision now, and enough people agreed to it."""

    verdict: str = Field(
        description="What it would count as; mixed: not the same of each action.",
        examples=["mixed"],
        json_schema_extra={"enum": list(Decision.Verdict.values)},
    )
    stands: bool = Field(
        description="Whether it speaks of what stands. Where it does not it makes the next version of it, on which the "
        "others have to agree anew.",
        examples=[False],
    )
    changed: list[str] = Field(
        description="The actions that would be asked about in another way, by id.", examples=[["order", "price"]]
    )
    impact: ImpactAnswer | None = Field(description="What it would do; null for an answer of which nothing is known.")


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


@router.post(
    "/{int:gate_id}/impacts",
    response=WordImpact,
    operation_id="foretell_decision",
    summary="Foretell a decision",
    auth=needs(Scope.DECIDE),
)
def of_word(request: HttpRequest, gate_id: GateId, word: Decide) -> HttpResponse:
    """What a decision would do: send what you would send there. Nothing is said by it, and it is refused as that."""
    gate, reader = gate_or_404(request, gate_id), reader_of(request)
    store.load_checkpoint(gate.checkpoint)
    sent = Said.of(**said_in(word))
    sent.digest()  # what cannot be written down is refused before anything is made of it
    reading = read(gate.pk)
    said, each, instead = put(reading, by=reader, said=sent)
    counts = said.verdict if each is None else mixing.named(each) if instead else Decision.Verdict.APPROVE
    found = _impact_of(reading.gate, reading.standing, said, instead)
    told = WordImpact(
        verdict=counts, stands=instead is None, changed=list(instead.changed) if instead else [],
        impact=None if found is None else ImpactAnswer.of(found),
    )  # fmt: skip
    return answer(told)


def _impact_of(gate: Gate, standing: Proposal, said: Said, instead: Next | None) -> Impact | None:
    card = standing.card
    future = Foretold(gate, card, standing.state_patch)
    if said.verdict == Decision.Verdict.REJECT:
        return future.back(step) if (step := back_to(said, card)) else future.stop()
    if said.verdict == Decision.Verdict.ANSWER:
        choice = (said.answer or {}).get("choice")
        return next((impact for _, of, impact in choices_of(gate) if of == choice), None)
    return future.approve() if instead is None else future.with_patch(instead.patch, instead.card)
