"""Picks the fields of a posted form that a draft keeps: all but typed secrets, files, and fields about the form itself.

A placeholder replaces a secret; a text that is not JSON is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping

from approvals.forms import names
from approvals.forms.texts import as_json
from approvals.models import Proposal
from approvals.schema.redact import Redaction, placeholder
from checkpoints.errors import ValueRefused
from checkpoints.values import canonical_json, json_pointer, patch

from . import actions, whole_state
from .posted import SHOWN

ABOUT_THE_FORM = frozenset(
    {"csrfmiddlewaretoken", "seen", "proposal", "key", "discard", "draft_seen", "typed", "instead"}
)


def kept(fields: Mapping[str, str], proposal: Proposal) -> dict[str, str]:
    """Return the fields of a posted form that a draft keeps; `proposal` is what it was rendered from."""
    said = {name: text for name, text in fields.items() if not _about_the_form(name)}
    _mask(said, whole_state.NAME, whole_state.veil_of(proposal.gate))
    for action in proposal.card.actions:
        hidden = action.redaction
        if not hidden:
            continue
        _mask(said, f"override.{action.id}", hidden)
        for field in actions.form_of(action, fields).fields if action.editable else ():
            if field.kind == "secret":
                said.pop(field.name, None)
            elif field.kind == "json":
                _mask(said, field.name, hidden.at(field.pointer))
    return said


def _about_the_form(name: str) -> bool:
    return name in ABOUT_THE_FORM or name.startswith(SHOWN) or names.is_file(name)


def _mask(fields: dict[str, str], name: str, veil: Redaction) -> None:
    """Replace the secrets in a JSON text by placeholders."""
    text = fields.get(name)
    if text is None or not veil:
        return
    try:
        value = canonical_json.parse(text)
    except ValueRefused:
        del fields[name]
        return
    typed = [place for place in veil.places(value) if not _stands(json_pointer.find(value, place))]
    for place in typed:
        value = patch.put(value, place, placeholder(place))
    fields[name] = as_json(value) if typed else text


def _stands(value: object) -> bool:
    """Tell whether a value is a placeholder, perhaps of another place, from which its item was moved."""
    return isinstance(value, str) and value.startswith(placeholder("/"))
