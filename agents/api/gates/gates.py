"""Gates: the open ones, and one with its proposal, votes and outcome."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.api.protocol import GateId, Hex, Page, Paging, Text, answer, gate_page, needs, one_of
from agents.api.protocol.exact_json import spliced
from agents.models import TokenScope
from agents.queries.access import reader_of
from approvals.consequences.outcome_fates import STATES, read_fates
from approvals.models import Gate, Outcome, Proposal
from approvals.policy import required
from approvals.presentation.decision_form import whole_state
from approvals.presentation.gate_facts import agreement as agreements
from approvals.presentation.gate_facts import authors, fate_words
from approvals.presentation.gate_facts.outcomes import ActionOutcome, deciders, judged
from approvals.presentation.gate_facts.provenance import Provenance
from approvals.views.access import gate_or_404
from checkpoints import store
from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.values import digests
from checkpoints.values.canonical_json import canonical

from .card_parts import PART, CardPartAnswer, card_parts
from .desk import DeskAnswer
from .masking import card_of, outcome_of

router = Router(tags=["gates"], auth=needs(TokenScope.SEE))
DIGEST = "5c0e1f2a3b4d5e6f708192a3b4c5d6e75c0e1f2a3b4d5e6f708192a3b4c5d6e7"


STATE_WORDS = (
    "waiting: not yet. unreported: its program has not reported it yet. stopped: the run failed before it. never: the "
    "run ended without it. elsewhere: the run went back to an earlier step without it. asked_again: not done, another "
    "gate asks again. intended: under way. reused: done before the gate, and not repeated. failed: certainly not done. "
    "unknown: it may have happened. abandoned: unknown, and done again on a person's order. undoing, undone: it was "
    "done. kept: done, on a branch that the run has left."
)


class GateSummary(Schema):
    """A stop of a run, at which people decide."""

    id: int = Field(description="The gate's number.", examples=[42])
    url: str = Field(
        description="The page on which people decide it.", examples=["https://holdpoint.example.com/gates/42/"]
    )
    run: int = Field(validation_alias="run_id", description="The run that waits at it.", examples=[7])
    agent: str = Field(validation_alias="run.plan.agent", description="The agent that asks.", examples=["refunds"])
    team: str = Field(validation_alias="team.name", description="The team that owns the run.", examples=["Support"])
    step: str = Field(description="The gate's step.", examples=["review"])
    kind: Annotated[str, one_of(Gate.Kind)] = Field(
        description="A review asks for a decision; a recovery asks how to go on after a fault.", examples=["review"]
    )
    status: Annotated[str, one_of(Gate.Status)] = Field(description="Whether it is still open.", examples=["open"])
    version: int = Field(description="Rises with each change of the gate.", examples=[1])
    proposal: int = Field(description="The version of the current proposal; an edit makes the next.", examples=[1])
    title: str = Field(description="Its title. The agent wrote it: data, never markup.", examples=["Refund €120.00"])
    risk: Annotated[str, one_of(Gate.Risk)] = Field(description="The risk.", examples=["medium"])
    outside: bool = Field(
        validation_alias="run.plan.external",
        description="Whether an external program asks: then titles, labels and, unless its tool is registered, the "
        "risk are its own statements.",
        examples=[False],
    )
    deadline: datetime | None = Field(description="When it expires; null: never.", examples=[None])
    settles_at: datetime | None = Field(
        description="When what was decided takes effect, which can be undone until then; null: nothing waits for that.",
        examples=[None],
    )
    settles_as: str = Field(
        description="What it will have been decided as then: a kind of outcome; empty: nothing waits for that.",
        examples=[""],
    )
    opened_at: datetime = Field(description="When it was opened.", examples=["2026-03-02T09:15:05.104112Z"])
    closed_at: datetime | None = Field(description="When it closed; null while it is open.", examples=[None])

    @staticmethod
    def resolve_url(gate: Gate) -> str:
        return gate_page(gate.pk)


class OpenGatePage(Page):
    """Some open gates, the longest open first."""

    items: list[GateSummary] = Field(description="The gates.")


class Vote(Schema):
    """One person's vote."""

    name: str = Field(description="Who decided.", examples=["Ann Okafor"])
    on_behalf_of: str = Field(
        description="The person who was away, whose authority they used; empty: their own.", examples=[""]
    )
    verdict: str = Field(description="Their verdict; mixed: see `actions`.", examples=["approve"])
    actions: dict[str, str] = Field(
        validation_alias="by_action",
        description="Their verdict for each action, by its id: approve, edit, reject or respond.",
        examples=[{"order": "edit", "price": "reject"}],
    )
    comment: str = Field(description="Their comment: data, never markup.", examples=[""])
    at: datetime | None = Field(description="When.", examples=["2026-03-02T09:21:40.555012Z"])
    proposal: int = Field(description="The version of the proposal that they decided on.", examples=[1])
    counts: bool = Field(description="Whether it counts for the current proposal.", examples=[True])
    you: bool = Field(description="Whether it is your own.", examples=[False])

    @staticmethod
    def resolve_counts(vote: agreements.VoteLine) -> bool:
        return not vote.lapsed


class AgreementAnswer(Schema):
    """The votes that a gate needs, and has."""

    quorum: int = Field(description="How many must approve.", examples=[2])
    agreed: int = Field(description="How many have approved the current proposal.", examples=[1])
    who: str = Field(description="Who may decide, in words.", examples=["anyone who may decide in Finance"])
    needs: str = Field(
        description="All that the proposal needs, in words; empty if any of those people may approve it.",
        examples=["Two of Finance, then one of Legal. Two rejections reject."],
    )
    asked: str = Field(
        description="Whose approval is needed now, and whose later, in words; empty if everybody is asked at once.",
        examples=["Now one of Finance. Then one of Legal."],
    )
    rules: list[str] = Field(
        description="Sentences: which rules of the policy count, and which could not be evaluated, so that the "
        "strictest that they may ask is required.",
        validation_alias="why",
        examples=[["By the rule “large”."]],
    )
    denials: int = Field(description="How many rejections reject it.", examples=[1])
    rejected: int = Field(description="How many rejections count.", examples=[0])
    voices: list[Vote] = Field(description="The decisions, oldest first.")


class ActionOutcomeAnswer(Schema):
    """The outcome of one action."""

    verdict: Annotated[str, one_of(("approve", "edit", "reject", "respond", "later"))] = Field(
        description="approve and edit: the action may run. reject, respond and later: it does not.", examples=["reject"]
    )
    by: str = Field(description="Who rejected it or answered instead; otherwise empty.", examples=["Ann Okafor"])
    reason: str = Field(description="Why it was rejected: data, never markup.", examples=["Too dear."])
    response: Any = Field(description="What the agent got instead; otherwise null.", examples=[None])


class EndingHead(Schema):
    """The outcome of a gate, without what was decided."""

    kind: Annotated[str, one_of(Outcome.Kind)] = Field(
        description="Expired and withdrawn gates do not count as rejected.", examples=["approved"]
    )
    by: str = Field(description="The people whose decisions counted; empty if nobody decided.", examples=["Ann Okafor"])
    at: datetime = Field(validation_alias="created_at", description="When.", examples=["2026-03-02T09:21:40.555012Z"])
    then: str = Field(description="After a rejection: stop, or back to a step.", examples=[""])
    back_to: str = Field(description="The step that the run was sent back to.", examples=[""])
    feedback: str = Field(
        validation_alias="words", description="What the agent reads after a rejection.", examples=[""]
    )
    effects: list[str] = Field(description="The effects that may run, once each.", examples=[["pay"]])
    preconditions: list[str] = Field(
        validation_alias="counted",
        description="The card's preconditions that must still hold when an effect is performed, by id.",
        examples=[["nothing-else-refunded"]],
    )
    actions: dict[str, ActionOutcomeAnswer] = Field(
        description="The result of each action, by its id; none if nobody decided, or a recovery question was "
        "answered.",
        examples=[{"order": {"verdict": "reject", "by": "Ann Okafor", "reason": "Too dear.", "response": None}}],
    )
    seen: Hex = Field(description="The digest of the proposal that was decided on, in hex.", examples=[DIGEST])
    to_run: Hex | None = Field(description="The digest of what may run; null if nothing may.", examples=[DIGEST])

    @staticmethod
    def resolve_by(outcome: Outcome) -> str:
        return deciders(outcome)

    @staticmethod
    def resolve_effects(outcome: Outcome) -> list[str]:
        return [grant.effect for grant in sorted(outcome.grants.all(), key=lambda each: each.pk)]

    @staticmethod
    def resolve_actions(outcome: Outcome) -> dict[str, ActionOutcome]:
        return {each.action.id: each for each in judged(outcome)}


class Ending(EndingHead):
    """The outcome of a gate, with what was decided."""

    arguments: dict[str, Any] = Field(
        description="The final arguments by action, as canonical JSON.", examples=[{"refund": {"amount": "120.00"}}]
    )
    answer: Any = Field(description="At a recovery gate: the choice and its value; otherwise null.", examples=[None])
    patch: list[dict[str, Any]] = Field(description="The edit, as a JSON Patch on the gate's state.", examples=[[]])


class GateHead(GateSummary):
    """A gate, with its votes."""

    digest: Hex = Field(
        description="SHA-256 over the current proposal, in hex. A decision binds it.", examples=[DIGEST]
    )
    checkpoint: Text = Field(
        description="The UUID of the saved state that it shows.", examples=["0190b2c4-6f3e-7c1a-9d2b-5e8f7a6c4d10"]
    )
    whole_state: bool = Field(
        description="Whether an edit may send the run's whole `state`: the gate's policy allows it.", examples=[False]
    )
    reason_required: bool = Field(
        validation_alias="policy.reason_required",
        description="Whether a rejection needs a `comment` that says why, by the gate's policy.",
        examples=[True],
    )
    step_up: bool = Field(
        description="Whether a decision counts only in a session in which its person recently confirmed who they are: "
        "on the gate's page, never by a token.",
        examples=[False],
    )
    step_up_method: str = Field(
        validation_alias="policy.step_up_method",
        description="By what they confirm it, where `step_up` says so: `any` (password, passkey or a code from an app) "
        "or `passkey`.",
        examples=["any"],
    )
    tokens_decide: bool = Field(
        validation_alias="policy.tokens_decide",
        description="Whether the gate's policy takes decisions by token. If not, people decide on the gate's page.",
        examples=[True],
    )
    changed_before: list[str] = Field(
        description="Who changed the run before this was asked, and what: sentences, whose values are data. Whoever "
        "did may not decide, unless the policy does not separate duties.",
        examples=[["Ann Okafor changed amount from 20.00 to 900.00 at checkpoint 4"]],
    )
    agreement: AgreementAnswer = Field(description="Who must approve, and who has.")
    desk: DeskAnswer = Field(description="The people on it, and those who are asked.")

    # The context of these is the gate's `standing` proposal, and its `reader`.

    @staticmethod
    def resolve_digest(gate: Gate, context: dict[str, Any]) -> bytes:
        return bytes(context["standing"].digest)

    @staticmethod
    def resolve_step_up(gate: Gate, context: dict[str, Any]) -> bool:
        return required.of(context["standing"], gate.policy).step_up

    @staticmethod
    def resolve_whole_state(gate: Gate, context: dict[str, Any]) -> bool:
        return whole_state.allowed(gate, context["standing"].card)

    @staticmethod
    def resolve_changed_before(gate: Gate) -> list[str]:
        return authors.changes(gate)

    @staticmethod
    def resolve_agreement(gate: Gate, context: dict[str, Any]) -> agreements.Agreement:
        return agreements.agreement(gate, context["standing"], user=context["reader"])

    @staticmethod
    def resolve_desk(gate: Gate, context: dict[str, Any]) -> DeskAnswer:
        return DeskAnswer.of(gate, context["reader"])


class BecameEffect(Schema):
    """One effect that was let run, and what became of it."""

    effect: str = Field(description="The effect's step.", examples=["pay"])
    action: str = Field(description="The action that it performs, by its id; empty: none.", examples=["refund"])
    state: Annotated[str, one_of(STATES)] = Field(description=STATE_WORDS, examples=["done"])


class Became(Schema):
    """The fate of what a gate let run."""

    state: Annotated[str, one_of(STATES)] = Field(
        description="The state of the effect that most needs looking at, as in `effects`.", examples=["done"]
    )
    words: str = Field(description="The same for people: data, never markup.", examples=["Done"])
    gate: int | None = Field(description="The gate that asks the same again; null: none.", examples=[None])
    effects: list[BecameEffect] = Field(description="Each effect, in the order of the grants.")


class GateDetail(GateHead):
    """A gate, with its proposal, votes and outcome."""

    card: dict[str, Any] = Field(
        description="The current proposal, with its edits, as canonical JSON. `digest` is SHA-256 over the line "
        "`holdpoint value` and these bytes; for masked values, over the true values.",
        examples=[{"title": "Refund €120.00", "actions": [{"id": "refund", "arguments": {"amount": "120.00"}}]}],
    )
    provenance: list[CardPartAnswer] = Field(
        description="Who says each part of `card`, by JSON Pointer.", examples=[[PART]]
    )
    unsupported: list[str] = Field(
        description="Sentences for people: amounts and names in an external program's text that no argument confirms.",
        examples=[["\u201c\u20ac10.00\u201d in the title is not what runs: amount is 99999.00."]],
    )
    masked: list[str] = Field(
        description="JSON Pointers to the secrets in `card`, which placeholders replace.", examples=[[]]
    )
    outcome: Ending | None = Field(description="How it ended; null while it is open.", examples=[None])
    became: Became | None = Field(
        description="What became of what it let run; null while it is open, and where it let nothing run.",
        examples=[None],
    )
    replaced_by: int | None = Field(
        description="The gate that asks the same again, as this one was withdrawn or its approval did not hold; null: "
        "none.",
        examples=[None],
    )
    replaces: list[int] = Field(
        description="The gates that this one replaces, the newest first, as far as you may see them.",
        examples=[[]],
    )


@router.get("", response=OpenGatePage, summary="List open gates")
def list_gates(request: HttpRequest, asked: Query[Paging]) -> HttpResponse:
    """Return the open gates that you may see, the longest open first: those of your teams and those that you review."""
    found = Gate.objects.open().visible_to(reader_of(request)).filter(pk__gt=asked.place).order_by("pk")
    return OpenGatePage.of(found.select_related("run__plan", "team"), asked)


@router.get("/{int:gate_id}", response=GateDetail, summary="Read a gate")
def get_gate(request: HttpRequest, gate_id: GateId) -> HttpResponse:
    """Return one gate, open or closed, that you may see."""
    gate = gate_or_404(request, gate_id)
    proposal = gate.standing()
    _verify(gate, proposal)
    head = GateHead.from_orm(gate, context={"standing": proposal, "reader": reader_of(request)})
    card, masked = card_of(gate, proposal)
    later = gate.replacement()
    unsupported = canonical(Provenance.of(gate).unsupported(proposal.card))
    return answer(
        head, provenance=card_parts(gate, proposal.card), unsupported=unsupported, masked=canonical(masked),
        replaced_by=canonical(later.pk if later else None),
        replaces=canonical(gate.replaced(to=reader_of(request))), card=card, outcome=ended(gate),
        became=canonical(became(gate, proposal)),
    )  # fmt: skip


def _verify(gate: Gate, proposal: Proposal) -> None:
    """Check the saved state and the proposal against their digests. Raises NotVerified."""
    with suppress(NoSuchCheckpoint):  # where the gate is closed, retention may have removed the state
        store.load_checkpoint(gate.checkpoint)
    if digests.of_canonical(bytes(proposal.body)) != bytes(proposal.digest):
        raise NotVerified(f"gate {gate.pk}", "its proposal does not match its digest")


def ended(gate: Gate) -> bytes:
    outcome: Outcome | None = getattr(gate, "outcome", None)
    if outcome is None:
        return b"null"
    return spliced(EndingHead.from_orm(outcome), **outcome_of(gate, outcome))


def became(gate: Gate, proposal: Proposal) -> dict[str, Any] | None:
    """Return what became of what a gate let run, as `Became`; None where it let nothing run."""
    fate = read_fates([gate]).get(gate.pk)
    words = fate_words.describe_fate(fate, proposal.card)
    if fate is None or words is None:
        return None
    effects = [{"effect": each.grant.effect, "action": each.grant.action, "state": each.state} for each in fate.grants]
    return {"state": words.state, "words": words.words, "gate": words.again or None, "effects": effects}
