"""Gates: the open ones, and one with its proposal, votes and outcome.

In saved values secrets become placeholders, the rest keeps its exact bytes. The API shows what the gate's page shows:
whoever reads it may decide.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents.api.gates.desk import DeskAnswer
from agents.api.protocol.answers import Page, Paging, answer_json, splice_json
from agents.api.protocol.auth import require_scope
from agents.api.protocol.schemas import ApiSchema, GateId, Hex, Text, gate_page, one_of
from agents.models import TokenScope
from approvals.cards import answer as answering
from approvals.cards.action import VERDICTS
from approvals.cards.card import Card, state_veil
from approvals.cards.quote import quoted
from approvals.consequences.performed import STATES, read_fates
from approvals.decisions import edit_state
from approvals.models import Gate, Outcome, Proposal
from approvals.policy import required
from approvals.presentation.decision_form import whole_state
from approvals.presentation.gate_facts import agreement as agreements
from approvals.presentation.gate_facts import outcomes
from approvals.presentation.gate_facts.namesakes import namesakes_of
from approvals.presentation.gate_facts.outcomes import ActionOutcome, deciders, judged
from approvals.presentation.gate_facts.provenance import CALL, PLAN, PROGRAM, TOOL, UNREADABLE, Provenance
from approvals.presentation.gate_page import earlier
from approvals.views.access import gate_or_404, reader_of
from checkpoints import store
from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.runs.plans import spec_of
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical, encode_canonical

PART = {"at": "/title", "by": PROGRAM, "words": "Title by payouts"}


def card_of(gate: Gate, proposal: Proposal) -> tuple[bytes, list[str]]:
    """Return (a proposal as JSON, the pointers to what is masked in it)."""
    body, card = bytes(proposal.body), proposal.card
    state = state_veil(spec_of(gate.run.plan), card)
    plain: dict[str, Any] = decode_canonical(body)
    found: list[str] = []
    for at, (action, shown) in enumerate(zip(plain.get("actions", []), card.actions, strict=True)):
        veil, place = shown.redaction, f"/actions/{at}/arguments"
        found += [place + word for word in veil.places(action.get("arguments"))]
        action["arguments"] = veil.masked(action.get("arguments"), named=True)
        if settled := action.get("settled"):
            veil, place = shown.response_redaction, f"/actions/{at}/settled/response"
            found += [place + word for word in veil.places(settled["response"])]
            settled["response"] = veil.masked(settled["response"], named=True)
    if answer := plain["answer"]:
        veil = answering.redaction(card, answer)
        found += ["/answer/value" + place for place in veil.places(answer["value"])]
        answer["value"] = veil.masked(answer["value"], named=True)
    if state and plain.get("state"):
        plain["state"] = state.patch(plain["state"])
    if state and plain.get("reopened"):
        plain["reopened"]["changes"] = edit_state.hidden(plain["reopened"].get("changes", []), card, state)
    return (encode_canonical(plain), found) if found or state else (body, [])


def outcome_of(gate: Gate, outcome: Outcome) -> dict[str, bytes]:
    """Return, by column, the JSON of what was decided."""
    card = outcome.proposal.card
    state = state_veil(spec_of(gate.run.plan), card)
    arguments: dict[str, Any] = decode_canonical(bytes(outcome.arguments))
    hidden = {action.id: action.redaction for action in card.actions}
    shown = {
        name: hidden[name].masked(item, named=True) if name in hidden else item for name, item in arguments.items()
    }
    return {
        "arguments": encode_canonical(shown),
        "answer": encode_canonical(answering.masked(card, outcome.answered)),
        "patch": encode_canonical(state.patch(outcome.state_patch)),
    }


class CardPartAnswer(ApiSchema):
    """One part of a card, and its author."""

    example: ClassVar = {"at": PART["at"], "by": PART["by"], "words": PART["words"]}

    at: str
    """JSON Pointer into `card`."""
    by: Annotated[str, one_of((PROGRAM, PLAN, TOOL, CALL, UNREADABLE))]
    """program: the external program that asks. plan: an agent of this server. tool: the people who registered the tool.
    call: it is what would run. unreadable: it would run, and cannot be read on the page: a file, an encoding, or a text
    that is too long."""
    words: str
    """The mark to show beside it; empty: it may be shown as Holdpoint's own."""


def card_parts(gate: Gate, card: Card) -> bytes:
    """Return the parts of a card as JSON. Needs the gate's run with its plan."""
    named: dict[int, str] = {}
    with suppress(NoSuchCheckpoint):  # where the gate is closed, retention may have removed the state
        named = namesakes_of(gate, quoted(card.quotes, gate.saved.state)) if card.quotes else {}
    return encode_canonical([asdict(part) for part in Provenance.of(gate).parts(card, named)])


router = Router(tags=["gates"], auth=require_scope(TokenScope.SEE))
DIGEST = "5c0e1f2a3b4d5e6f708192a3b4c5d6e75c0e1f2a3b4d5e6f708192a3b4c5d6e7"


STATE_WORDS = (
    "waiting: not yet. unreported: its program has not reported it yet. stopped: the run failed before it. never: the "
    "run ended without it. elsewhere: the run went back to an earlier step without it. asked_again: not done, another "
    "gate asks again. intended: under way. reused: done before the gate, and not repeated. failed: certainly not done. "
    "unknown: it may have happened. abandoned: unknown, and done again on a person's order. undoing, undone: it was "
    "done. kept: done, on a branch that the run has left."
)


class GateSummary(ApiSchema):
    """A stop of a run, at which people decide."""

    example: ClassVar = {
        "id": 42, "url": "https://holdpoint.example.com/gates/42/", "run": 7, "agent": "refunds", "team": "Support",
        "step": "review", "kind": "review", "status": "open", "version": 1, "proposal": 1, "title": "Refund €120.00",
        "risk": "medium", "outside": False, "deadline": None, "settles_at": None, "settles_as": "",
        "opened_at": "2026-03-02T09:15:05.104112Z", "closed_at": None,
    }  # fmt: skip

    id: int
    """The gate's number."""
    url: str
    """The page on which people decide it."""
    run: int = Field(validation_alias="run_id")
    """The run that waits at it."""
    agent: str = Field(validation_alias="run.plan.agent")
    """The agent that asks."""
    team: str = Field(validation_alias="team.name")
    """The team that owns the run."""
    step: str
    """The gate's step."""
    kind: Annotated[str, one_of(Gate.Kind)]
    """A review asks for a decision; a recovery asks how to go on after a fault."""
    status: Annotated[str, one_of(Gate.Status)]
    """Whether it is still open."""
    version: int
    """Rises with each change of the gate."""
    proposal: int
    """The version of the current proposal; an edit makes the next."""
    title: str
    """Its title. The agent wrote it: data, never markup."""
    risk: Annotated[str, one_of(Gate.Risk)]
    """The risk."""
    outside: bool = Field(validation_alias="run.plan.external")
    """Whether an external program asks: then titles, labels and, unless its tool is registered, the risk are its own
    statements."""
    deadline: datetime | None
    """When it expires; null: never."""
    settles_at: datetime | None
    """When what was decided takes effect, which can be undone until then; null: nothing waits for that."""
    settles_as: str
    """What it will have been decided as then: a kind of outcome; empty: nothing waits for that."""
    opened_at: datetime
    """When it was opened."""
    closed_at: datetime | None
    """When it closed; null while it is open."""

    @staticmethod
    def resolve_url(gate: Gate) -> str:
        return gate_page(gate.pk)


class OpenGatePage(Page):
    """Some open gates, the longest open first."""

    items: list[GateSummary]
    """The gates."""


class Vote(ApiSchema):
    """One person's vote."""

    example: ClassVar = {
        "name": "Ann Okafor", "on_behalf_of": "", "verdict": "approve",
        "actions": {"order": "edit", "price": "reject"}, "comment": "", "at": "2026-03-02T09:21:40.555012Z",
        "proposal": 1, "counts": True, "you": False,
    }  # fmt: skip

    name: str
    """Who decided."""
    on_behalf_of: str
    """The person who was away, whose authority they used; empty: their own."""
    verdict: str = Field(validation_alias="decision.verdict")
    """Their verdict; mixed: see `actions`."""
    actions: dict[str, str] = Field(validation_alias="decision.by_action")
    """Their verdict for each action, by its id: approve, edit, reject or respond."""
    comment: str
    """Their comment: data, never markup."""
    at: datetime | None = Field(validation_alias="decision.created_at")
    """When."""
    proposal: int = Field(validation_alias="decision.proposal.number")
    """The version of the proposal that they decided on."""
    counts: bool
    """Whether it counts for the current proposal."""
    you: bool
    """Whether it is your own."""

    @staticmethod
    def resolve_counts(vote: agreements.VoteLine) -> bool:
        return not vote.lapsed


class AgreementAnswer(ApiSchema):
    """The votes that a gate needs, and has."""

    example: ClassVar = {
        "quorum": 2, "agreed": 1, "who": "anyone who may decide in Finance",
        "needs": "Two of Finance, then one of Legal. Each confirms who they are.",
        "asked": "Now one of Finance. Then one of Legal.", "rules": ["By the rule “large”."], "rejected": 0,
    }  # fmt: skip

    quorum: int
    """How many must approve."""
    agreed: int
    """How many have approved the current proposal."""
    who: str
    """Who may decide, in words."""
    needs: str
    """All that the proposal needs, in words; empty if any of those people may approve it."""
    asked: str
    """Whose approval is needed now, and whose later, in words; empty if everybody is asked at once."""
    rules: list[str] = Field(validation_alias="why")
    """Sentences: which rules of the policy count, and which could not be evaluated, so that the strictest that they may
    ask is required."""
    rejected: int
    """How many rejections count."""
    voices: list[Vote]
    """The decisions, oldest first."""


class ActionOutcomeAnswer(ApiSchema):
    """The outcome of one action."""

    example: ClassVar = {"verdict": "reject", "by": "Ann Okafor", "reason": "Too dear.", "response": None}

    verdict: Annotated[str, one_of(VERDICTS)]
    """approve and edit: the action may run. reject, respond and later: it does not."""
    by: str
    """Who rejected it or answered instead; otherwise empty."""
    reason: str
    """Why it was rejected: data, never markup."""
    response: Any
    """What the agent got instead; otherwise null."""


class EndingHead(ApiSchema):
    """The outcome of a gate, without what was decided."""

    example: ClassVar = {
        "kind": "approved", "by": "Ann Okafor", "at": "2026-03-02T09:21:40.555012Z", "then": "", "back_to": "",
        "feedback": "", "effects": ["pay"], "preconditions": ["nothing-else-refunded"],
        "actions": {"order": {"verdict": "reject", "by": "Ann Okafor", "reason": "Too dear.", "response": None}},
        "seen": DIGEST, "to_run": DIGEST,
    }  # fmt: skip

    kind: Annotated[str, one_of(Outcome.Kind)]
    """Expired and withdrawn gates do not count as rejected."""
    by: str
    """The people whose decisions counted; empty if nobody decided."""
    at: datetime = Field(validation_alias="created_at")
    """When."""
    then: str
    """After a rejection: stop, or back to a step."""
    back_to: str
    """The step that the run was sent back to."""
    feedback: str = Field(validation_alias="words")
    """What the agent reads after a rejection."""
    effects: list[str]
    """The effects that may run, once each."""
    preconditions: list[str] = Field(validation_alias="counted")
    """The card's preconditions that must still hold when an effect is performed, by id."""
    actions: dict[str, ActionOutcomeAnswer]
    """The result of each action, by its id; none if nobody decided, or a recovery question was answered."""
    seen: Hex
    """The digest of the proposal that was decided on, in hex."""
    to_run: Hex | None
    """The digest of what may run; null if nothing may."""

    @staticmethod
    def resolve_by(outcome: Outcome) -> str:
        return deciders(outcome)

    @staticmethod
    def resolve_effects(outcome: Outcome) -> list[str]:
        return [grant.effect for grant in sorted(outcome.grants.all(), key=lambda grant: grant.pk)]

    @staticmethod
    def resolve_actions(outcome: Outcome) -> dict[str, ActionOutcome]:
        return {item.action.id: item for item in judged(outcome)}


class Ending(EndingHead):
    """The outcome of a gate, with what was decided."""

    example: ClassVar = {"arguments": {"refund": {"amount": "120.00"}}, "answer": None, "patch": []}

    arguments: dict[str, Any]
    """The final arguments by action, as canonical JSON."""
    answer: Any
    """At a recovery gate: the choice and its value; otherwise null."""
    patch: list[dict[str, Any]]
    """The edit, as a JSON Patch on the gate's state."""


class GateHead(GateSummary):
    """A gate, with its votes."""

    example: ClassVar = {
        "digest": DIGEST, "checkpoint": "0190b2c4-6f3e-7c1a-9d2b-5e8f7a6c4d10", "whole_state": False,
        "reason_required": True, "step_up": False, "step_up_method": "any", "tokens_decide": True,
        "changed_before": ["Ann Okafor changed amount from 20.00 to 900.00 at checkpoint 4"],
    }  # fmt: skip

    digest: Hex
    """SHA-256 over the current proposal, in hex. A decision binds it."""
    checkpoint: Text
    """The UUID of the saved state that it shows."""
    whole_state: bool
    """Whether an edit may send the run's whole `state`: the gate's policy allows it."""
    reason_required: bool = Field(validation_alias="policy.reason_required")
    """Whether a rejection needs a `comment` that says why, by the gate's policy."""
    step_up: bool
    """Whether a decision counts only in a session in which its person recently confirmed who they are: on the gate's
    page, never by a token."""
    step_up_method: str = Field(validation_alias="policy.step_up_method")
    """By what they confirm it, where `step_up` says so: `any` (password, passkey or a code from an app) or `passkey`.
    """
    tokens_decide: bool = Field(validation_alias="policy.tokens_decide")
    """Whether the gate's policy takes decisions by token. If not, people decide on the gate's page."""
    changed_before: list[str]
    """Who changed the run before this was asked, and what: sentences, whose values are data. Whoever did may not
    decide, unless the policy does not separate duties."""
    agreement: AgreementAnswer
    """Who must approve, and who has."""
    desk: DeskAnswer
    """The people on it, and those who are asked."""

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
        return earlier.changes(gate)

    @staticmethod
    def resolve_agreement(gate: Gate, context: dict[str, Any]) -> agreements.Agreement:
        return agreements.agreement(gate, context["standing"], user=context["reader"])

    @staticmethod
    def resolve_desk(gate: Gate, context: dict[str, Any]) -> DeskAnswer:
        return DeskAnswer.from_gate(gate, context["reader"])


class BecameEffect(ApiSchema):
    """One effect that was let run, and what became of it."""

    example: ClassVar = {"effect": "pay", "action": "refund"}

    effect: str
    """The effect's step."""
    action: str
    """The action that it performs, by its id; empty: none."""
    state: Annotated[str, one_of(STATES)] = Field(description=STATE_WORDS, examples=["done"])


class Became(ApiSchema):
    """The fate of what a gate let run."""

    example: ClassVar = {"state": "done", "words": "Done", "gate": None}

    state: Annotated[str, one_of(STATES)]
    """The state of the effect that most needs looking at, as in `effects`."""
    words: str
    """The same for people: data, never markup."""
    gate: int | None
    """The gate that asks the same again; null: none."""
    effects: list[BecameEffect]
    """Each effect, in the order of the grants."""


class GateDetail(GateHead):
    """A gate, with its proposal, votes and outcome."""

    example: ClassVar = {
        "card": {"title": "Refund €120.00", "actions": [{"id": "refund", "arguments": {"amount": "120.00"}}]},
        "provenance": [PART],
        "unsupported": ["\u201c\u20ac10.00\u201d in the title is not what runs: amount is 99999.00."], "masked": [],
        "outcome": None, "became": None, "replaced_by": None, "replaces": [],
    }  # fmt: skip

    card: dict[str, Any]
    """The current proposal, with its edits, as canonical JSON. `digest` is SHA-256 over the line `holdpoint value` and
    these bytes; for masked values, over the true values."""
    provenance: list[CardPartAnswer]
    """Who says each part of `card`, by JSON Pointer."""
    unsupported: list[str]
    """Sentences for people: amounts and names in an external program's text that no argument confirms."""
    masked: list[str]
    """JSON Pointers to the secrets in `card`, which placeholders replace."""
    outcome: Ending | None
    """How it ended; null while it is open."""
    became: Became | None
    """What became of what it let run; null while it is open, and where it let nothing run."""
    replaced_by: int | None
    """The gate that asks the same again, as this one was withdrawn or its approval did not hold; null: none."""
    replaces: list[int]
    """The gates that this one replaces, the newest first, as far as you may see them."""


@router.get("", response=OpenGatePage, summary="List open gates")
def list_gates(request: HttpRequest, asked: Query[Paging]) -> HttpResponse:
    """Return the open gates that you may see, the longest open first: those of your teams and those that you review."""
    found = Gate.objects.open().visible_to(reader_of(request)).filter(pk__gt=asked.place).order_by("pk")
    return OpenGatePage.answer_rows(found.select_related("run__plan", "team"), asked)


@router.get("/{int:gate_id}", response=GateDetail, summary="Read a gate")
def get_gate(request: HttpRequest, gate_id: GateId) -> HttpResponse:
    """Return one gate, open or closed, that you may see."""
    gate = gate_or_404(request, gate_id)
    proposal = gate.standing()
    verify_gate(gate, proposal)
    head = GateHead.from_orm(gate, context={"standing": proposal, "reader": reader_of(request)})
    card, masked = card_of(gate, proposal)
    later = gate.replacement()
    unsupported = encode_canonical(Provenance.of(gate).unsupported(proposal.card))
    return answer_json(
        head, provenance=card_parts(gate, proposal.card), unsupported=unsupported, masked=encode_canonical(masked),
        replaced_by=encode_canonical(later.pk if later else None),
        replaces=encode_canonical(gate.replaced(to=reader_of(request))), card=card, outcome=encode_ending(gate),
        became=encode_canonical(became(gate, proposal)),
    )  # fmt: skip


def verify_gate(gate: Gate, proposal: Proposal) -> None:
    """Check the saved state and the proposal against their digests. Raises NotVerified."""
    with suppress(NoSuchCheckpoint):  # where the gate is closed, retention may have removed the state
        store.load_checkpoint(gate.checkpoint)
    if digests.of_canonical(bytes(proposal.body)) != bytes(proposal.digest):
        raise NotVerified(f"gate {gate.pk}", "its proposal does not match its digest")


def encode_ending(gate: Gate) -> bytes:
    outcome: Outcome | None = getattr(gate, "outcome", None)
    return b"null" if outcome is None else splice_json(EndingHead.from_orm(outcome), **outcome_of(gate, outcome))


def became(gate: Gate, proposal: Proposal) -> dict[str, Any] | None:
    """Return what became of what a gate let run, as `Became`; None where it let nothing run."""
    fate = read_fates([gate]).get(gate.pk)
    words = outcomes.describe_fate(fate, proposal.card)
    if fate is None or words is None:
        return None
    effects = [
        {"effect": grant.grant.effect, "action": grant.grant.action, "state": grant.state} for grant in fate.grants
    ]
    return {"state": words.state, "words": words.words, "gate": words.again or None, "effects": effects}
