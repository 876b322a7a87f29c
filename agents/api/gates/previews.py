"""Previews of a decision and of each choice at a gate, and preflights: checks that a run can go on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.access import Gone, run_or_404
from agents.api.gates.decisions import MARK, Decide, said_in
from agents.api.protocol.answers import answer_json
from agents.api.protocol.auth import require_scope
from agents.api.protocol.schemas import ApiSchema, GateId, RunId, one_of
from agents.api.runs.moves import ImpactAnswer
from agents.models import TokenScope
from approvals.cards.likeness import Likeness
from approvals.consequences.done_before import done_before
from approvals.consequences.gate import GateImpacts
from approvals.decisions.decision_impact import DecisionImpact, impact_of
from approvals.decisions.prepared_decision import prepare
from approvals.decisions.submission import Submission
from approvals.gates import preflight_facts
from approvals.gates.projection import PendingVote, counting
from approvals.gates.reading import read
from approvals.models import Decision, Gate
from approvals.policy import required
from approvals.preflight import ORDER
from approvals.presentation.gate_page.earlier import say_done
from approvals.views.access import gate_or_404, reader_of, why_gone
from checkpoints.errors import NoSuchCheckpoint

runs = Router(tags=["runs"], auth=require_scope(TokenScope.READ))
DECIDE = require_scope(TokenScope.DECIDE)
router = Router(tags=["gates"], auth=require_scope(TokenScope.SEE))
Colour = Annotated[str, one_of(ORDER)]
SHOWN_WORDS = "A digest of this preview. Send it with the decision, which is refused if it would by then do more."
SHOWN = Field(description=SHOWN_WORDS, examples=[MARK])
LEFT_WORDS = "How many more people must approve after it; 0: it closes the gate and takes effect at once."
LEFT = Field(description=LEFT_WORDS, examples=[0])


class FindingAnswer(ApiSchema):
    """The result of one check."""

    example: ClassVar = {
        "check": "version", "colour": "green", "words": "Version 1 of refunds is deployed, with the run's own steps.",
    }  # fmt: skip

    check: str
    """What was checked."""
    colour: Colour
    """Green: in order. Amber: it can resume, with a warning. Red: it cannot resume."""
    words: str
    """What was found, and what to do about it. It may quote an agent's code: data, never markup."""


class PreflightAnswer(ApiSchema):
    """The result of a preflight."""

    example: ClassVar = {"colour": "green", "title": "Ready: 6 checks passed"}

    colour: Colour
    """The worst level of the findings. While it is red, decisions are refused."""
    title: str
    """The level in words."""
    findings: list[FindingAnswer]
    """Every check, in order."""


@runs.get("/{int:run_id}/preflight", response=PreflightAnswer, summary="Check a run")
def get_run_preflight(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """Tell whether the run can go on from its head: its checkpoint, its version, its state, its environment."""
    return answer_json(PreflightAnswer.from_orm(preflight_facts.of_run(run_or_404(request, run_id))))


@router.get("/{int:gate_id}/preflight", response=PreflightAnswer, summary="Check a gate")
def get_gate_preflight(request: HttpRequest, gate_id: GateId) -> HttpResponse:
    """Tell whether the run can go on from what the gate shows, whatever is decided."""
    gate = gate_or_404(request, gate_id)
    try:
        return answer_json(PreflightAnswer.from_orm(preflight_facts.of_gate(gate)))
    except NoSuchCheckpoint:  # where the gate is closed, retention may have removed the state
        raise Gone(why_gone(gate)) from None


class ChoiceImpact(ApiSchema):
    """One choice and its impact, if nothing fails."""

    example: ClassVar = {"choice": "back", "of": "propose"}

    choice: str
    """approve, stop, back or answer."""
    of: str
    """For back the step, for answer its id; otherwise empty."""
    impact: ImpactAnswer
    """What it would do."""
    shown: str = SHOWN
    left: int = LEFT


class DoneBeforeAnswer(ApiSchema):
    """One effect of another run of the team that is like what the gate asks for."""

    example: ClassVar = {
        "how": "arguments", "done": True, "at": "2026-03-02T09:21:41.604112Z", "gate": 22, "run": 23,
        "words": "Paid \u20ac89.00 at 23:23 by R-23 (gate 22)",
    }  # fmt: skip

    how: Annotated[str, one_of(Likeness._fields)]
    """What is the same: the arguments, the pinned arguments (key), or only the resource."""
    done: bool
    """Whether it is known to be done; false: it may have been."""
    at: datetime
    """When it ended, or was begun."""
    gate: int | None
    """The gate that let it run; null if you may not see that."""
    run: int | None
    """The run that did it, likewise."""
    words: str
    """The same for people: data, never markup."""


class ChoiceImpacts(ApiSchema):
    """Every choice that the gate offers."""

    done_before: list[DoneBeforeAnswer] = []
    """What other runs of the team did, or may have done, that is like what the gate asks for: the same first, then the
    newest. A bulk decision approves no gate with one that is more than the resource."""
    items: list[ChoiceImpact]
    """The choices; none if the gate is closed."""


class DecisionPreview(ApiSchema):
    """The impact of one decision, if it were sent now and enough people approved it."""

    example: ClassVar = {"verdict": "mixed", "stands": False, "changed": ["order", "price"]}

    verdict: Annotated[str, one_of(Decision.Verdict)]
    """The verdict that it counts as; mixed: different verdicts for the actions."""
    stands: bool
    """Whether it is about the current proposal. If not, it makes a new proposal, which the others have to approve
    again."""
    changed: list[str]
    """The actions whose proposal it would change, by id."""
    impact: ImpactAnswer | None
    """What it would do; null for an answer whose effect is unknown."""
    shown: str = SHOWN
    left: int = LEFT


@router.get("/{int:gate_id}/impacts", response=ChoiceImpacts, summary="Preview a gate's choices")
def get_gate_impacts(request: HttpRequest, gate_id: GateId) -> HttpResponse:
    """Return the impact of each choice: what runs, may run, is kept, is undone, may be undone, and cannot be undone."""
    gate, reader = gate_or_404(request, gate_id), reader_of(request)
    iterable = [] if gate.status != Gate.Status.OPEN else choices_of(gate, by=reader.pk)
    items = [
        ChoiceImpact(choice=name, of=of, impact=ImpactAnswer.from_impact(impact), shown=made.mark, left=made.left)
        for name, of, made in iterable
        if (impact := made.impact) is not None
    ]
    card = gate.standing().card
    asking = [gate] if gate.status == Gate.Status.OPEN else []
    done = done_before(asking, reader=reader, cards={gate.pk: card}).get(gate.pk, [])
    before = [
        DoneBeforeAnswer(
            how=before.how, done=before.done, at=before.at, gate=before.gate or None, run=before.run or None,
            words=say_done(before, card.resource, outside=gate.run.plan.external),
        )
        for before in done
    ]  # fmt: skip
    return answer_json(ChoiceImpacts(items=items, done_before=before))


def choices_of(gate: Gate, *, by: int) -> Iterator[tuple[str, str, DecisionImpact]]:
    """Yield (choice, its step or answer, its impact) for the reader with the id `by`, in the order of the page."""
    proposal = gate.standing()
    needs = required.of(proposal, gate.policy)
    ballot = PendingVote.of(gate, needs, counting(gate), by=by)
    agreed, anew = ballot.after(needs).left, ballot.after(needs, anew=True).left
    card = proposal.card
    future = GateImpacts(gate, card, proposal.state_patch)
    if card.question is None:
        yield "approve", "", DecisionImpact(impact=future.approve(), left=agreed)
    standing = (proposal.content["answer"] or {}).get("choice")
    for choice in card.question["choices"] if card.question else []:
        more = agreed if standing in (None, choice["id"]) else anew
        yield "answer", choice["id"], DecisionImpact(impact=future.answering(choice["id"]), left=more)
    if gate.kind == Gate.Kind.REVIEW:
        yield "stop", "", DecisionImpact(impact=future.stop())
        for step in reversed(card.back_to):
            yield "back", step, DecisionImpact(impact=future.back(step))


@router.post("/{int:gate_id}/impacts", auth=DECIDE, response=DecisionPreview, summary="Preview a decision")
def preview_decision(request: HttpRequest, gate_id: GateId, decision: Decide) -> HttpResponse:
    """Return the impact of a decision, which is sent as it would be to decide.

    Nothing is recorded, and it is refused for the same reasons.
    """
    gate, reader = gate_or_404(request, gate_id), reader_of(request)
    saved = gate.saved  # verified, before any other answer
    sent = Submission(**said_in(decision))
    sent.digest()  # refuse what cannot be encoded, before anything uses it
    found = read(gate.pk, user_id=reader.pk)
    found.gate.saved = saved
    prepared = prepare(found, sent, by=reader)
    instead = prepared.next
    ballot = PendingVote.of(prepared.gate, prepared.needs, counting(prepared.gate), by=reader.pk)
    ballot.check(rejects=prepared.rejects, anew=instead is not None)
    made = impact_of(prepared).leaving(prepared.left_after(ballot))
    preview = DecisionPreview(
        verdict=prepared.verdict, stands=instead is None, changed=list(instead.changed) if instead else [],
        impact=None if made.impact is None else ImpactAnswer.from_impact(made.impact), shown=made.mark, left=made.left,
    )  # fmt: skip
    return answer_json(preview)
