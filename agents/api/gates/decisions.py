"""Deciding a gate: one verdict for the whole gate, or one for each of its actions."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from agents.access import reader_of
from agents.api.protocol import (
    ApiSchema,
    GateId,
    Key,
    answer_json,
    confirmation_of,
    keep_answer,
    one_of,
    optional_one_of,
    own_key,
    require_scope,
)
from agents.api.runs.moves import Order
from agents.models import TokenScope
from approvals.decisions import deciding
from approvals.decisions.decision_impact import LENGTH
from approvals.decisions.submission import MOST_NAMED, Submission
from approvals.models import Decision
from approvals.views.access import gate_or_404

from .gates import DIGEST, GateHead

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

    verdict: Annotated[str, one_of(("approve", "edit", "reject", "respond", "later"))]
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
    read; a rejection needs none."""

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
        made = deciding.decide(gate, sent, by=reader, confirmed=confirmation_of(request), saved=saved)
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
