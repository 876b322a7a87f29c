"""Builds the answers to a gate's question, each with the form of the value it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from approvals import forms
from approvals.cards.card import AnswerChoice, Card
from approvals.forms import Form
from approvals.schema import redact, walk

from .actions import TypedDecision, loose


@dataclass(frozen=True, kw_only=True)
class AnswerForm:
    """One answer that a gate offers, with the form of the value it needs."""

    id: str
    label: str
    grants: bool = False  # it lets the gate's effects run
    form: Form | None = None
    errors: Sequence[str] = ()

    @property
    def prefix(self) -> str:
        return answer_prefix(self.id)


def answer_prefix(choice_id: str) -> str:
    return "value." + forms.names.encoded(choice_id).replace("!", "%21").replace("~1", "%2F")


def answer_form(
    card: Card,
    choice: AnswerChoice,
    posted: Mapping[str, str],
    errors: Mapping[str, str] | None = None,
    *,
    quoted: bool = False,
) -> Form:
    """Build the form of an answer's value, which starts blank."""
    schema = redact.masking(choice.get("schema") or {}, card.source)
    return forms.build(
        schema, blank(schema), prefix=answer_prefix(choice["id"]), posted=posted, errors=errors, quoted=quoted
    )


def blank(schema: Mapping[str, Any]) -> Any:
    """Return the value that such a form starts with: the default, or an object to fill in."""
    part = walk.resolve_part(schema, schema)
    return schema.get("default", {} if part.get("type") == "object" else None)


def answers(card: Card, *, typed: TypedDecision, quoted: bool = False) -> list[AnswerForm]:
    """List the choices of a gate's question. `quoted`: an external program wrote the words of the values' schemas."""
    question = card.question
    if question is None:
        return []
    found = []
    for choice in question["choices"]:
        mine = {e["pointer"].removeprefix("/value"): e["message"] for e in typed.errors if not e["action"]}
        errors = mine if typed.posted.get("answer") == choice["id"] else {}
        form = answer_form(card, choice, typed.posted, errors, quoted=quoted) if choice.get("needs_value") else None
        label, grants = choice.get("label", choice["id"]), choice.get("grants", False)
        found.append(AnswerForm(id=choice["id"], label=label, grants=grants, form=form, errors=loose(form, errors)))
    return found
