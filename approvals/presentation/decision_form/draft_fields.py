"""Picks the fields of a posted form that a draft keeps: all but typed secrets, files, and fields about the form itself.

A placeholder replaces a secret; a text that is not JSON is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping

from approvals.forms import Form, names
from approvals.forms.texts import as_json
from approvals.models import Proposal
from approvals.schema import redact
from approvals.schema.redact import Redaction, placeholder_for
from checkpoints.errors import ValueRefused
from checkpoints.values import canonical_json, json_pointer, patch

from . import actions, whole_state
from .conflicts import CONFLICT
from .posted import SHOWN

ABOUT_THE_FORM = frozenset(
    {"csrfmiddlewaretoken", "seen", "proposal", "key", "discard", "draft_seen", "typed", "instead"}
)


def kept(fields: Mapping[str, str], proposal: Proposal) -> dict[str, str]:
    """Return the fields of a posted form that a draft keeps; `proposal` is what it was rendered from."""
    said = {
        name: text
        for name, text in fields.items()
        if name not in ABOUT_THE_FORM and not name.startswith(SHOWN) and not names.is_file(name)
    }
    _mask(said, whole_state.NAME, whole_state.veil_of(proposal.gate))
    card = proposal.card
    for choice in card.question["choices"] if card.question else ():
        veil = redact.veil(choice.get("schema") or {}, card.source)
        _mask_inputs(said, actions.answer_form(card, choice, fields), veil)
    for action in card.actions:
        if action.response_redaction:
            said.pop(f"response.{action.id}", None)  # nothing there could put a placeholder's secret back
        _mask(said, f"override.{action.id}", action.redaction)
        if action.editable:
            _mask_inputs(said, actions.form_of(action, fields), action.redaction)
    return said


def _mask_inputs(fields: dict[str, str], form: Form, veil: Redaction) -> None:
    for field in form.fields if veil else ():
        if field.kind == "secret":
            fields.pop(field.name, None)
        elif field.kind == "json":
            for name in (field.name, CONFLICT + field.name):
                _mask(fields, name, veil.at(field.pointer))


def _mask(fields: dict[str, str], name: str, veil: Redaction) -> None:
    """Replace the secrets in a JSON text by placeholders."""
    text = fields.get(name)
    if text is None or not veil:
        return
    try:
        value = canonical_json.parse_json(text)
    except ValueRefused:
        del fields[name]
        return
    typed = [place for place in veil.places(value) if not _stands(json_pointer.find_value(value, place))]
    for place in typed:
        value = patch.put(value, place, placeholder_for(place))
    fields[name] = as_json(value) if typed else text


def _stands(value: object) -> bool:
    """Tell whether a value is a placeholder, perhaps of another place, from which its item was moved."""
    return isinstance(value, str) and value.startswith(placeholder_for("/"))
