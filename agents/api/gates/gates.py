"""Gates: those that ask, and one with all that it asks, who agreed and how it ended."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any, Self

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.api.protocol.addresses import GateId, gate_page
from agents.api.protocol.auth import needs
from agents.api.protocol.exact_json import answer, spliced
from agents.api.protocol.paging import NEXT, Paging, next_of
from agents.models import TokenScope
from agents.queries.access import reader_of
from approvals.models import Gate, Outcome, Proposal
from approvals.presentation.decision_form import whole_state
from approvals.presentation.gate_facts import agreement as agreements
from approvals.presentation.gate_facts.outcomes import ActionOutcome, deciders, judged
from approvals.presentation.gate_facts.provenance import Provenance
from approvals.views.access import gate_or_404
from checkpoints import store
from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.values import digests
from checkpoints.values.canonical_json import canonical

from .masking import card_of, outcome_of

router = Router(tags=["gates"], auth=needs(TokenScope.SEE))
DIGEST = "5c0e1f2a3b4d5e6f708192a3b4c5d6e75c0e1f2a3b4d5e6f708192a3b4c5d6e7"


class GateSummary(Schema):
    """A stop at which people are asked."""

    id: int = Field(description="The gate's number.", examples=[42])
    url: str = Field(
        description="The page on which people decide it.", examples=["https://holdpoint.example.com/gates/42/"]
    )
    run: int = Field(description="The run that waits at it.", examples=[7])
    agent: str = Field(description="The agent that asks.", examples=["refunds"])
    team: str = Field(description="The team that owns the run.", examples=["Support"])
    step: str = Field(description="The gate's step.", examples=["review"])
    kind: str = Field(
        description="A review asks for a decision; a recovery asks how to go on after a fault.",
        examples=["review"],
        json_schema_extra={"enum": list(Gate.Kind.values)},
    )
    status: str = Field(
        description="Whether it is still open.", examples=["open"], json_schema_extra={"enum": list(Gate.Status.values)}
    )
    version: int = Field(description="Rises with each change of the gate.", examples=[1])
    proposal: int = Field(description="The version of the current proposal; an edit makes the next.", examples=[1])
    title: str = Field(description="Its title. The agent wrote it: data, never markup.", examples=["Refund €120.00"])
    risk: str = Field(description="The risk.", examples=["medium"], json_schema_extra={"enum": list(Gate.Risk.values)})
    outside: bool = Field(
        description="Whether an external program asks: then titles, labels and, unless its tool is registered, the "
        "risk are its own statements.",
        examples=[False],
    )
    deadline: datetime | None = Field(description="When it expires; null: never.", examples=[None])
    opened_at: datetime = Field(description="When it was opened.", examples=["2026-03-02T09:15:05.104112Z"])
    closed_at: datetime | None = Field(description="When it closed; null while it is open.", examples=[None])

    @classmethod
    def of(cls, gate: Gate) -> Self:
        """Needs the gate's run with its plan, and its team."""
        return cls(**_summed_up(gate))


class GatePage(Schema):
    """Some open gates, the longest open first."""

    items: list[GateSummary] = Field(description="The gates.")
    next: str | None = NEXT


class Voice(Schema):
    """One person's word."""

    name: str = Field(description="Who decided.", examples=["Ann Okafor"])
    verdict: str = Field(description="Their verdict; mixed: see `actions`.", examples=["approve"])
    actions: dict[str, str] = Field(
        description="Their verdict for each action, by its id: approve, edit, reject or respond.",
        examples=[{"order": "edit", "price": "reject"}],
    )
    comment: str = Field(description="Their comment: data, never markup.", examples=[""])
    at: datetime | None = Field(description="When.", examples=["2026-03-02T09:21:40.555012Z"])
    proposal: int = Field(description="The version of the proposal that they decided on.", examples=[1])
    counts: bool = Field(description="Whether it counts for the current proposal.", examples=[True])
    you: bool = Field(description="Whether it is your own.", examples=[False])


class Agreement(Schema):
    "Who must approve, and who has."

    quorum: int = Field(description="How many must approve.", examples=[2])
    agreed: int = Field(description="How many have approved the current proposal.", examples=[1])
    who: str = Field(description="Who may decide, in words.", examples=["anyone who may decide in Finance"])
    voices: list[Voice] = Field(description="The decisions, oldest first.")

    @classmethod
    def of(cls, gate: Gate, *, reader: User) -> Self:
        """As the gate's page tells it, without the places that are still empty."""
        found = agreements.agreement(gate, user=reader)
        voices = [
            Voice(
                name=each.name,
                verdict=each.verdict,
                actions=dict(each.by_action),
                comment=each.comment,
                at=each.at,
                proposal=each.proposal,
                counts=not each.lapsed,
                you=each.you,
            )
            for each in found.voices
            if each.name
        ]
        return cls(quorum=found.quorum, agreed=found.agreed, who=found.who, voices=voices)


class OfAction(Schema):
    """What became of one action."""

    verdict: str = Field(
        description="approve and edit: the action may run. reject and respond: it does not.",
        examples=["reject"],
        json_schema_extra={"enum": ["approve", "edit", "reject", "respond"]},
    )
    by: str = Field(description="Who rejected it or answered instead; otherwise empty.", examples=["Ann Okafor"])
    reason: str = Field(description="Why it was rejected: data, never markup.", examples=["Too dear."])
    response: Any = Field(description="What the agent got instead; otherwise null.", examples=[None])

    @classmethod
    def of(cls, found: ActionOutcome) -> Self:
        return cls(verdict=found.verdict, by=found.by, reason=found.reason, response=found.response)


class EndingHead(Schema):
    """How a gate ended, without what was decided."""

    kind: str = Field(
        description="Expired and withdrawn gates do not count as rejected.",
        examples=["approved"],
        json_schema_extra={"enum": list(Outcome.Kind.values)},
    )
    by: str = Field(description="The people whose decisions counted; empty if nobody decided.", examples=["Ann Okafor"])
    at: datetime = Field(description="When.", examples=["2026-03-02T09:21:40.555012Z"])
    then: str = Field(description="After a rejection: stop, or back to a step.", examples=[""])
    back_to: str = Field(description="The step that the run was sent back to.", examples=[""])
    feedback: str = Field(description="What the agent reads after a rejection.", examples=[""])
    effects: list[str] = Field(description="The effects that may run, once each.", examples=[["pay"]])
    preconditions: list[str] = Field(
        description="The card's preconditions that must still hold when an effect is performed, by id.",
        examples=[["nothing-else-refunded"]],
    )
    actions: dict[str, OfAction] = Field(
        description="The result of each action, by its id; none if nobody decided, or a recovery question was "
        "answered.",
        examples=[{"order": {"verdict": "reject", "by": "Ann Okafor", "reason": "Too dear.", "response": None}}],
    )
    seen: str = Field(description="The digest of the proposal that was decided on, in hex.", examples=[DIGEST])
    to_run: str | None = Field(description="The digest of what may run; null if nothing may.", examples=[DIGEST])

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        return cls(
            kind=outcome.kind,
            by=deciders(outcome),
            at=outcome.created_at,
            then=outcome.then,
            back_to=outcome.back_to,
            feedback=outcome.words,
            effects=[grant.effect for grant in sorted(outcome.grants.all(), key=lambda each: each.pk)],
            preconditions=outcome.counted,
            actions={each.id: OfAction.of(each) for each in judged(outcome)},
            seen=bytes(outcome.seen).hex(),
            to_run=None if outcome.to_run is None else bytes(outcome.to_run).hex(),
        )


class Ending(EndingHead):
    """How a gate ended, with what was decided."""

    arguments: dict[str, Any] = Field(
        description="The final arguments by action, as canonical JSON.", examples=[{"refund": {"amount": "120.00"}}]
    )
    answer: Any = Field(description="At a recovery gate: the choice and its value; otherwise null.", examples=[None])
    patch: list[dict[str, Any]] = Field(description="The edit, as a JSON Patch on the gate's state.", examples=[[]])


class GateHead(GateSummary):
    """A gate, with who must agree."""

    digest: str = Field(
        description="SHA-256 over the current proposal, in hex. A decision binds it.", examples=[DIGEST]
    )
    checkpoint: str = Field(
        description="The UUID of the saved state that it shows.", examples=["0190b2c4-6f3e-7c1a-9d2b-5e8f7a6c4d10"]
    )
    whole_state: bool = Field(
        description="Whether an edit may send the run's whole `state`: the gate's policy allows it.", examples=[False]
    )
    reason_required: bool = Field(
        description="Whether a rejection needs a `comment` that says why, by the gate's policy.", examples=[True]
    )
    step_up: bool = Field(
        description="Whether a decision counts only in a session in which the password was confirmed recently: on the "
        "gate's page, never by a token.",
        examples=[False],
    )
    agreement: Agreement = Field(description="Who must approve, and who has.")


class GateDetail(GateHead):
    """A gate: all that it asks, who agreed, and how it ended."""

    card: dict[str, Any] = Field(
        description="The current proposal, with its edits, as canonical JSON. `digest` is SHA-256 over the line "
        "`holdpoint value` and these bytes; for masked values, over the true values.",
        examples=[{"title": "Refund €120.00", "actions": [{"id": "refund", "arguments": {"amount": "120.00"}}]}],
    )
    unsupported: list[str] = Field(
        description="Sentences for people: amounts and names in an external program's text that no argument confirms.",
        examples=[["\u201c\u20ac10.00\u201d in the title is not what runs: amount is 99999.00."]],
    )
    masked: list[str] = Field(
        description="JSON Pointers to the secrets in `card`, which placeholders replace.", examples=[[]]
    )
    outcome: Ending | None = Field(description="How it ended; null while it is open.", examples=[None])
    replaced_by: int | None = Field(
        description="The gate that replaces this one, which was withdrawn; null: none.",
        examples=[None],
    )
    replaces: list[int] = Field(
        description="The withdrawn gates that this one replaces, the newest first, as far as you may see them.",
        examples=[[]],
    )


@router.get("", response=GatePage, operation_id="list_gates", summary="List open gates")
def listing(request: HttpRequest, asked: Query[Paging]) -> HttpResponse:
    """The open gates that you may see, the longest open first: those of your teams and those that you review."""
    found = Gate.objects.open().visible_to(reader_of(request)).filter(pk__gt=asked.place).order_by("pk")
    rows = list(found.select_related("run__plan", "team")[: asked.limit + 1])
    items = [GateSummary.of(gate) for gate in rows[: asked.limit]]
    return answer(GatePage(items=items, next=next_of([gate.pk for gate in rows], asked.limit)))


@router.get("/{int:gate_id}", response=GateDetail, operation_id="get_gate", summary="Read a gate")
def one(request: HttpRequest, gate_id: GateId) -> HttpResponse:
    """One gate, open or closed, that you may see."""
    gate = gate_or_404(request, gate_id)
    proposal = gate.standing()
    _verify(gate, proposal)
    head = head_of(gate, reader=reader_of(request))
    card, masked = card_of(gate, proposal)
    later = gate.replacement()
    unsupported = canonical(Provenance.of(gate).unsupported(proposal.card))
    return answer(
        head, unsupported=unsupported, masked=canonical(masked), replaced_by=canonical(later.pk if later else None),
        replaces=canonical(gate.replaced(to=reader_of(request))), card=card, outcome=ended(gate),
    )  # fmt: skip


def head_of(gate: Gate, *, reader: User) -> GateHead:
    """The gate as it stands. Needs its run with its plan, and its team."""
    standing = gate.standing()
    return GateHead(
        **_summed_up(gate),
        digest=bytes(standing.digest).hex(),
        checkpoint=str(gate.checkpoint),
        whole_state=whole_state.allowed(gate, standing.card),
        reason_required=gate.policy.reason_required,
        step_up=gate.policy.step_up,
        agreement=Agreement.of(gate, reader=reader),
    )


def _verify(gate: Gate, proposal: Proposal) -> None:
    """Raises NotVerified where the saved state, or what is asked over it, is not what its digest says."""
    with suppress(NoSuchCheckpoint):  # where the gate is closed, retention may have removed the state
        store.load_checkpoint(gate.checkpoint)
    if digests.of_canonical(bytes(proposal.body)) != bytes(proposal.digest):
        raise NotVerified(f"gate {gate.pk}", "its proposal does not match its digest")


def ended(gate: Gate) -> bytes:
    outcome: Outcome | None = getattr(gate, "outcome", None)
    if outcome is None:
        return b"null"
    return spliced(EndingHead.of(outcome), **outcome_of(gate, outcome))


def _summed_up(gate: Gate) -> dict[str, Any]:
    own = ("step", "kind", "status", "version", "proposal", "title", "risk", "deadline", "opened_at", "closed_at")
    about = {
        "id": gate.pk,
        "url": gate_page(gate.pk),
        "run": gate.run_id,
        "agent": gate.run.plan.agent,
        "team": gate.team.name,
        "outside": gate.run.plan.external,
    }
    return about | {name: getattr(gate, name) for name in own}
