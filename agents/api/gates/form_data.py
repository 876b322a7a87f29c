"""A gate's form as data: what its page draws, so that another program can draw the same form.

The nodes are those of approvals.forms. A value is never taken from them, as they hold the true one: it is read in the
masked value of the whole form, whose placeholders an edit may send back.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.api.gates.decisions import LINES
from agents.api.gates.gates import DIGEST, verify_gate
from agents.api.protocol.answers import answer_json
from agents.api.protocol.auth import require_scope
from agents.api.protocol.schemas import ApiSchema, GateId
from agents.models import TokenScope
from approvals.forms import Form, FormField, FormNode, ShapeChoice
from approvals.presentation.decision_form.actions import ActionSheet, AnswerForm, form_of
from approvals.presentation.gate_page.page import GatePage
from approvals.views.access import page_or_404
from checkpoints import store
from checkpoints.values import json_pointer

router = Router(tags=["gates"], auth=require_scope(TokenScope.SEE))


class FormChoice(ApiSchema):
    """One value that can be chosen."""

    example: ClassVar = {"value": "slow", "label": "slow"}

    value: Any
    """The JSON value that it gives."""
    label: str
    """What the page calls it."""


class FormPart(ApiSchema):
    """One input of a form, or an object, list or choice that has inputs in it."""

    example: ClassVar = {
        "pointer": "/amount", "label": "Amount", "title": "", "kind": "decimal", "value": "120.00", "required": True,
        "nullable": False, "open": True, "help": "Net of fees", "hints": ["at most 500"], "choices": [],
        "suggestions": [], "pinned": True, "missing": False, "unit": "EUR", "parts": [],
    }  # fmt: skip

    pointer: str
    """JSON Pointer to its value, in the form's whole value."""
    label: str
    """Its name. Where an external program wrote the schema, it is the member's real name."""
    title: str = Field(validation_alias="place.title")
    """The program's own name for it then: data, never markup."""
    kind: str
    """The kind of input. Of a text: text, long, decimal, date, time, datetime, moment, duration, uuid, email, uri,
    secret. Else: number, integer, boolean, enum, file (a reference), json. Of what holds `parts`: group (an object),
    rows (a list, or an object of free keys: its items), choice (of a shape; `value` is the chosen one's name among
    `choices`). closed: an object or list that is too much to be drawn at first."""
    value: Any
    """An input's value; null if there is none. A secret is a placeholder."""
    required: bool = Field(validation_alias="place.required")
    """Whether the schema requires it."""
    nullable: bool
    """Whether it may be null."""
    open: bool = True
    """Whether it can be typed into. If not, there is nothing to choose, or it is too long for an input: show it."""
    help: str
    """The schema's description of it: data, never markup."""
    hints: list[str]
    """What the schema allows, in words."""
    choices: list[FormChoice]
    """The values of which it takes one; empty: any that fits."""
    suggestions: list[str] = []
    """Some of its possible values, as texts, if there are too many for `choices`."""
    pinned: bool
    """Whether it has to be looked at first."""
    missing: bool
    """Whether it must be filled in or changed before anybody can approve."""
    unit: str
    """The currency of an amount."""
    parts: list[FormPart] = Field(validation_alias="children")
    """What is in it, in the page's order: of many, the first. An edit may also replace it as a whole."""

    # The context of these is the form's whole `value`, masked.

    @staticmethod
    def resolve_value(node: FormNode, context: dict[str, Any]) -> Any:
        value = json_pointer.get(context["value"], node.pointer) if isinstance(node, FormField) else None
        return node.chosen if isinstance(node, ShapeChoice) else value

    @staticmethod
    def resolve_choices(node: FormNode) -> list[FormChoice]:
        options = [option for option in node.choices if option.gives is not None or node.nullable]
        return [FormChoice(value=option.gives, label=option.label) for option in options]


class OfferedForm(ApiSchema):
    """The form of an action's arguments, or of the value that an answer takes."""

    example: ClassVar = {"id": "order", "title": "Beans", "editable": True, "verdicts": ["edit"], "value": LINES}

    id: str
    """The action's or the answer's id in the gate's card."""
    title: str
    """The action's title, or the answer in words: data, never markup."""
    editable: bool
    """Whether you may fill it in."""
    verdicts: list[str] = []
    """The verdicts that the action takes by itself; reject needs a reason then unless all are rejected. An answer has
    none."""
    value: Any
    """The whole value: the action's arguments, or what the answer's value begins with. Send it back as a whole, with
    what was typed at the pointers."""
    form: FormPart | None
    """The form; null: the answer takes no value."""


class GateFormData(ApiSchema):
    """The verdicts that a gate's page offers you, and the forms of all that can be filled in."""

    example: ClassVar = {
        "proposal": 1, "digest": DIGEST, "why_not": "", "verdicts": ["approve", "edit", "reject"],
        "reason_required": True, "back_to": [{"value": "propose", "label": "Propose"}], "answers": [],
    }  # fmt: skip

    proposal: int
    """The version of the proposal that the forms are of."""
    digest: str
    """Its digest: send it as `seen` with the decision."""
    why_not: str
    """Why you may not decide, or nobody can now; empty: you may."""
    verdicts: list[str]
    """The verdicts that you may send for the whole gate."""
    reason_required: bool
    """Whether a rejection needs a `comment` that says why."""
    back_to: list[FormChoice]
    """The steps to which a rejection may send the run back (`then: back`), the nearest first. It may stop the run too.
    """
    actions: list[OfferedForm]
    """The actions, in the card's order."""
    answers: list[OfferedForm]
    """The answers to the gate's question; empty: it asks none."""


@router.get("/{int:gate_id}/form", response=GateFormData, summary="Read a gate's form")
def get_gate_form(request: HttpRequest, gate_id: GateId) -> HttpResponse:
    """Return what the gate's page offers you to decide and to fill in, so that a program can draw the same form."""
    with store.reading():
        page = page_or_404(request, gate_id)
        verify_gate(page.gate, page.proposal)
        return answer_json(_form_of(page))


def _form_of(page: GatePage) -> GateFormData:
    asks, sends, rejects = page.card.question is not None, page.may_send, page.card.rejects
    offered = {"approve": page.offers_approve and not asks, "edit": page.can_edit, "reject": rejects, "answer": asks}
    back_to = page.choices.back_to if sends and rejects else []
    return GateFormData.model_construct(  # which reads no part a second time
        proposal=page.gate.proposal, digest=page.seen,
        why_not=page.why_not or ("" if sends or page.preflight is None else page.preflight.title),
        verdicts=[verdict for verdict, offers in offered.items() if offers and sends],
        reason_required=page.gate.policy.reason_required,
        back_to=[FormChoice(value=step, label=page.plan.title_of(step)) for step in back_to],
        actions=list(map(_action_form, page.sheets)),
        answers=[_answer_form(answer, editable=sends) for answer in page.answers],
    )  # fmt: skip


def _action_form(sheet: ActionSheet) -> OfferedForm:
    action, editable = sheet.action, sheet.form is not None
    form = sheet.form or form_of(action, {}, quoted=sheet.quoted)
    masked = action.redaction.masked(action.arguments, named=True)
    return _offered(form, masked, id=action.id, title=action.title, editable=editable, verdicts=[*action.verdicts])


def _answer_form(answer: AnswerForm, *, editable: bool) -> OfferedForm:
    value = answer.form and answer.form.root.was
    return _offered(answer.form, value, id=answer.id, title=answer.label, editable=editable)


def _offered(form: Form | None, value: Any, **named: Any) -> OfferedForm:
    part = FormPart.from_orm(form.root, context={"value": value}) if form else None
    return OfferedForm.model_construct(value=value, form=part, **named)
