"""Decisions: of one gate, of several of one kind by one order, and undoing one's own."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Annotated, Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from agents.api.gates.gates import DIGEST, GateHead
from agents.api.protocol.answers import answer_json
from agents.api.protocol.auth import confirmation_of, require_scope
from agents.api.protocol.idempotency_keys import Key, do_once, keep_answer, own_key
from agents.api.protocol.schemas import ApiSchema, GateId, Order, one_of, optional_one_of
from agents.models import TokenScope
from approvals.cards.action import VERDICTS
from approvals.decisions import deciding
from approvals.decisions.bulk import orders
from approvals.decisions.bulk.carrying_out import carry_out
from approvals.decisions.bulk.orders import BulkChoice, BulkSubmission
from approvals.decisions.decision_impact import LENGTH
from approvals.decisions.submission import MOST_NAMED, Submission
from approvals.decisions.undo_window import recorded, take_back_within
from approvals.gates.reading import read
from approvals.models import Decision
from approvals.policy.bulk import MOST
from approvals.views.access import gate_or_404, reader_of

router = Router(tags=["gates"], auth=require_scope(TokenScope.DECIDE))
LINES = {"lines": [{"sku": "COF-250", "quantity": 24, "price": "6.40"}]}
EACH: dict[str, Any] = {
    "order": {"verdict": "edit", "arguments": LINES},
    "price": {"verdict": "reject", "reason": "Regulars would not forgive it."},
    "message": {"verdict": "respond", "response": "I have rung them up."},
}

MARK = "2a1f0c9b8d7e5c0e1f2a3b4d"


class OnAction(Order):
    """The verdict on one action."""

    example: ClassVar = {
        "verdict": "reject", "arguments": LINES, "reason": "Regulars would not forgive it.",
        "response": "I have rung them up.",
    }  # fmt: skip

    verdict: Annotated[str, one_of(VERDICTS)]
    """One of the action's `verdicts` in the card."""
    arguments: Any = None
    """For an edit: all of its new arguments."""
    reason: str = ""
    """For a rejection: the reason. The agent reads it."""
    response: Any = None
    """For respond: what the agent gets instead of the effect's result, by the schema `response` in the card; a text if
    that is empty."""


class Decide(Order):
    """One person's decision: `verdict` for the whole gate, or `actions` for each action by itself."""

    example: ClassVar = {
        "seen": DIGEST, "verdict": "approve", "actions": EACH, "arguments": {"order": LINES}, "state": None,
        "comment": "", "then": "back", "back_to": "", "answer": {"choice": "happened", "value": {"payment": "re_1"}},
        "preconditions": ["nothing-else-refunded"], "dropped": [], "shown": "", "confirm": [], "second_look": False,
    }  # fmt: skip

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"seen": DIGEST, "verdict": "approve"}, {"seen": DIGEST, "actions": EACH}]}
    )

    seen: str = Field(pattern="^[0-9a-f]{64}$")
    """The `digest` of the gate as you read it. If the proposal has changed since, the answer is 409."""
    verdict: str = Field("", json_schema_extra=optional_one_of("approve", "edit", "reject", "answer"))
    """For all actions at once; leave it out if you send `actions`. Approving accepts the current proposal, with the
    edits, rejections and answers of others."""
    actions: dict[str, OnAction] | None = Field(None, min_length=1)
    """A verdict for each action, by its id; name every action of the card. Approved and edited actions may run,
    rejected and answered ones do not. Rejecting all of them rejects the gate."""
    arguments: dict[str, Any] | None = None
    """For the verdict edit: new arguments by action id."""
    state: dict[str, Any] | None = None
    """For the verdict edit, instead of `arguments`: the run's whole new state. Only if the gate's policy allows it."""
    comment: str = ""
    """Recorded; after a rejection the agent reads it. If the gate says `reason_required`, a rejection needs one."""
    then: str = Field("", json_schema_extra=optional_one_of("stop", "back"))
    """Required for a rejection: stop the run, or send it back."""
    back_to: str = ""
    """The step to send it back to; empty: the step that the gate names."""
    answer: dict[str, Any] | None = None
    """For the verdict answer: the choice, and its value if it takes one."""
    preconditions: list[str] = Field([], max_length=MOST_NAMED)
    """The card's preconditions that you add, by id. Those listed as `required` or `preselected` apply without being
    named."""
    dropped: list[str] = Field([], max_length=MOST_NAMED)
    """The `preselected` preconditions of the card that should not apply, by id. One still applies if another person who
    approves does not drop it."""
    shown: str = Field("", pattern=f"^([0-9a-f]{{{LENGTH}}})*$", max_length=2_000 * LENGTH)
    """The `shown` of …/impacts for this decision. If the decision would by now do more, because it became the last vote
    needed or because of what was done meanwhile, nothing is recorded and the answer is 409 `impact_changed`, with
    the impact. Empty: record it whatever it does."""
    confirm: list[int] = Field([], max_length=1000)
    """The numbers of the effects that were performed before and may be performed again: `repeats` of the impact. If one
    is missing, nothing is recorded and the answer is 422 `needs_confirmation`."""

    second_look: bool = False
    """Whether you looked once more. Required (422 `second_look`) after a number of approvals faster than anybody can
    read, and where part of what would run cannot be read on the page; a rejection needs none."""

    @model_validator(mode="before")
    @classmethod
    def named_as_one_action(cls, sent: Any) -> Any:
        """Refuse a `reason` for the whole gate, and name the member that is meant."""
        if isinstance(sent, dict) and "reason" in sent:
            words = "belongs to one action, under `actions`; for all of them at once give the reason in `comment`"
            fault = InitErrorDetails(type=PydanticCustomError("misnamed", words), loc=("reason",), input=sent["reason"])
            raise ValidationError.from_exception_data("Decide", [fault])
        return sent


class Decided(ApiSchema):
    """A recorded decision, and the gate after it."""

    example: ClassVar = {
        "id": 311, "verdict": "mixed", "actions": {name: item["verdict"] for name, item in EACH.items()},
    }  # fmt: skip

    id: int
    """The decision's number."""
    verdict: Annotated[str, one_of(Decision.Verdict)]
    """The verdict; mixed: different verdicts for the actions."""
    actions: dict[str, str]
    """The verdicts by action id."""
    gate: GateHead
    """The gate. It is decided if enough people have approved by now."""


@router.post("/{int:gate_id}/decisions", response={201: Decided}, summary="Decide a gate")
def decide_gate(request: HttpRequest, gate_id: GateId, decision: Decide, key: Key) -> HttpResponse:
    """Decide a gate. Each person has one vote on the current proposal.

    An edit, or a rejection of some actions, makes a new proposal, which the others have to approve again.
    """
    gate, reader = gate_or_404(request, gate_id), reader_of(request)
    saved = gate.saved  # raises if the state does not verify

    def say() -> HttpResponse:
        named = own_key(request, key) or secrets.token_hex(16)
        sent = Submission(key=named, **said_in(decision))
        reading = read(gate_id, user_id=reader.pk, key=named)
        reading.gate.saved = saved
        made = deciding.decide(gate, sent, by=reader, confirmed=confirmation_of(request), reading=reading)
        now = gate_or_404(request, gate_id)
        values = {"id": made.pk, "verdict": made.verdict, "actions": made.by_action, "gate": now}
        decided = Decided.model_validate(values, context={"standing": now.standing(), "reader": reader})
        return answer_json(decided, http_status=201)

    return keep_answer(request, key, say)


def said_in(decision: Decide) -> dict[str, Any]:
    """Return a decision's body as the arguments of a `Submission`."""
    item = None if decision.actions is None else {name: _plain(action) for name, action in decision.actions.items()}
    words = decision.model_dump(exclude={"seen", "actions"})
    return {**words, "verdicts": item, "arguments": decision.arguments or {}, "seen": bytes.fromhex(decision.seen)}


def _plain(action: OnAction) -> dict[str, Any]:
    """Return the members that were filled in."""
    return {name: value for name, value in action.model_dump().items() if value not in (None, "")}


class GateToDecide(Order):
    """One gate of a bulk decision, as you read it."""

    example: ClassVar = {"gate": 42, "seen": DIGEST, "shown": ""}

    gate: int = Field(ge=1, le=2**63 - 1)
    """The gate's number."""
    seen: str = Field(pattern="^[0-9a-f]{64}$")
    """The `digest` of the gate as you read it. If the proposal has changed since, this gate is refused."""
    shown: str = Field("", pattern=f"^([0-9a-f]{{{LENGTH}}})*$", max_length=2_000 * LENGTH)
    """The `shown` of the gate's impacts for this decision; empty: record it whatever it does."""


class DecideTogether(Order):
    """One person's one verdict on several gates of one kind."""

    example: ClassVar = {
        "verdict": "approve", "comment": "Checked against the ledger.", "then": "stop", "second_look": True,
    }  # fmt: skip

    verdict: Annotated[str, one_of(("approve", "reject"))]
    """The verdict on each of them."""
    gates: list[GateToDecide] = Field(min_length=1, max_length=MOST)
    """The gates, each once: of the same agent, step and policy, asking about the same tools."""
    comment: str
    """The reason. It is recorded with each decision; after a rejection each agent reads it."""
    then: str = Field("", json_schema_extra=optional_one_of("stop", "back"))
    """Required for a rejection: stop the runs, or send each back to the step that its gate names."""
    second_look: bool = False
    """Whether you looked at each of them. An approval needs it (422 without)."""


class GateResult(ApiSchema):
    """The result for one gate."""

    example: ClassVar = {"gate": 42, "state": "decided", "decision": 311, "status": "decided", "code": "", "detail": ""}

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)  # no answer is without a member

    gate: int = Field(validation_alias="item.gate_id")
    """The gate's number."""
    state: Annotated[str, one_of(("decided", "refused", "waiting"))]
    """decided: your decision is recorded. refused: it is not, and `code` says why. waiting: not yet."""
    decision: int | None = Field(default_factory=lambda: None, validation_alias="decision.pk")
    """The decision's number; null if there is none."""
    status: str = Field(default_factory=str, validation_alias="gate.status")
    """The gate's status now; empty if you see no such gate. open: others must approve too."""
    code: str = Field(validation_alias="item.code")
    """Why it was refused: as a decision of its own would be, `not_in_bulk` or `not_found`."""
    detail: str = Field(validation_alias="item.words")
    """The same for a person."""


class DecidedTogether(ApiSchema):
    """A bulk decision, gate by gate."""

    example: ClassVar = {"id": 7, "decided": 1, "refused": 0, "finished_at": "2026-03-02T09:21:40.555012Z"}

    id: int = Field(validation_alias="order.pk")
    """Its number; `bulk` in the events of its decisions."""
    decided: int
    """How many gates it decided."""
    refused: int
    """How many it did not."""
    finished_at: datetime | None = Field(validation_alias="order.finished_at")
    """When it came to its end."""
    results: list[GateResult]
    """The results, in the order sent."""


@router.post("/decisions", response={201: DecidedTogether}, summary="Decide several gates")
def decide_gates(request: HttpRequest, order: DecideTogether, key: Key) -> HttpResponse:
    """Decide several gates of one kind. Each is decided or refused by itself; none is decided twice.

    Refused is what the policy does not let people decide together (`not_in_bulk`), what you do not see (`not_found`),
    and whatever a decision of that gate alone would be refused for.
    """
    reader = reader_of(request)

    def say() -> HttpResponse:
        chosen = [BulkChoice(gate.gate, bytes.fromhex(gate.seen), gate.shown) for gate in order.gates]
        sent = BulkSubmission(
            key=own_key(request, key) or secrets.token_hex(16), verdict=order.verdict, gates=chosen,
            comment=order.comment, then=order.then, second_look=order.second_look,
        )  # fmt: skip
        taken = orders.take(sent, by=reader)
        carry_out(taken, by=reader, confirmed=confirmation_of(request))
        taken.refresh_from_db()
        return answer_json(DecidedTogether.from_orm(orders.progress(taken, reader=reader)), http_status=201)

    return keep_answer(request, key, say)


class UndoOrder(Order):
    """The decision to undo."""

    example: ClassVar = {"decision": 311}

    decision: int | None = Field(None, ge=1, lt=2**63)
    """Your decision's number. Another one, or one that counts no more, is not undone; null: the one that counts."""


@router.post("/{int:gate_id}/undos", response={201: Decided}, summary="Undo a decision")
def undo_decision(request: HttpRequest, gate_id: GateId, undo: UndoOrder, key: Key) -> HttpResponse:
    """Take your own decision back while the gate is still open, so that it counts no more.

    Refused where the policy has no undo window, and once the gate is closed.
    """
    gate, reader = gate_or_404(request, gate_id), reader_of(request)

    def say() -> HttpResponse:
        taken = take_back_within(gate, by=reader, decision=undo.decision)
        now = gate_or_404(request, gate_id)
        values = {"id": taken.pk, "verdict": taken.verdict, "actions": taken.by_action, "gate": now}
        undone = Decided.model_validate(values, context={"standing": now.standing(), "reader": reader})
        return answer_json(undone, http_status=201)

    with recorded(gate, by=reader):
        return do_once(request, key, say)
