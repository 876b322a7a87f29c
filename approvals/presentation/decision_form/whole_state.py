"""The whole state as JSON in one text area, where a gate's policy lets people edit it.

Invisible characters are written as JSON escapes, as wherever a value is typed as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from approvals.cards.card import Card
from approvals.decisions.edit_state import PART, fault, taken_at
from approvals.errors import Problem
from approvals.forms import EDITABLE
from approvals.forms.texts import as_json
from approvals.models import Gate, Proposal
from approvals.schema import redact
from approvals.schema.redact import Redaction
from checkpoints.errors import ValueRefused
from checkpoints.runs.plans import spec_of
from checkpoints.values import canonical_json, patch

from .actions import TypedDecision

NAME = "state"  # of the text area


@dataclass(frozen=True, kw_only=True)
class WholeStateArea:
    """The text area. `text` is None where the state is too large to be edited on a page."""

    text: str | None
    was: str
    size: int
    errors: Sequence[Problem] = ()
    rows: Sequence[Mapping[str, Any]] = ()  # rows of the reader's own change

    @property
    def edited(self) -> bool:
        """Tell whether it was edited, and so is drawn open."""
        return bool(self.errors) or self.text not in (None, self.was)


def allowed(gate: Gate, card: Card) -> bool:
    """Tell whether this gate takes an edit of the whole state."""
    return taken_at(gate) and card.question is None


def veil_of(gate: Gate) -> Redaction:
    """Return the veil over the gate's state, where the whole state may be edited; else an open one."""
    return redact.veil(spec_of(gate.run.plan).state_schema) if taken_at(gate) else redact.OPEN


def state_of(proposal: Proposal) -> dict[str, Any] | None:
    """Return the state that a proposal asks for; None where whole-state edits are off. Raises NotVerified."""
    if not taken_at(proposal.gate):
        return None
    found: dict[str, Any] = patch.apply(proposal.state_patch, proposal.gate.saved.state)
    return found


def written(state: Mapping[str, Any], veil: Redaction) -> str:
    """Write a state as text, with placeholders for secrets."""
    return as_json(veil.masked(dict(state), named=True))


def drawn(state: Mapping[str, Any], typed: TypedDecision, veil: Redaction) -> WholeStateArea:
    """Return the text area over `state`, with what was typed into it."""
    was = written(state, veil)
    if len(was) > EDITABLE:
        return WholeStateArea(text=None, was="", size=len(was))
    errors = [each for each in typed.errors if each["part"] == PART]
    return WholeStateArea(text=typed.posted.get(NAME, was), was=was, size=len(was), errors=errors, rows=typed.rows)


def read(form: Mapping[str, str], state: Mapping[str, Any] | None, veil: Redaction) -> TypedDecision:
    """Read the whole state from the form, compared with the one on the screen; `state` None: it was not offered.

    An unchanged text counts as nothing posted.
    """
    text = form.get(NAME, "").replace("\r\n", "\n")
    if NAME not in form or (state is not None and text == written(state, veil)):
        return TypedDecision()
    typed = TypedDecision(posted={NAME: text} if text else {})
    try:
        value = canonical_json.parse(text)
    except ValueRefused as refused:
        said = _("Write JSON: %(reason)s.") % {"reason": refused.reason}
        return replace(typed, errors=[fault(said, refused.pointer)])
    if not isinstance(value, dict):
        return replace(typed, errors=[fault(_("Write the whole state: an object with its fields."))])
    try:
        value = veil.kept(value, dict(state or {}))
    except ValueRefused as refused:
        return replace(typed, errors=[fault(f"{refused.reason}.", refused.pointer)])
    if state is not None and patch.same(value, dict(state)):
        return TypedDecision()
    return replace(typed, state=value, rows=veil.rows(patch.changes(dict(state or {}), value)))


def carried(
    typed: TypedDecision,
    sent: TypedDecision,
    veil: Redaction,
    *,
    before: Mapping[str, Any] | None,
    now: Mapping[str, Any] | None,
) -> TypedDecision:
    """Return `typed` with the text that was sent over the state `before`, merged into the current state.

    A field that the reader did not change has its current value. A text that is no state is kept as it is.
    """
    text = sent.posted.get(NAME, "")
    if not text or now is None:
        return typed
    if sent.state is None or before is None:
        return replace(typed, posted={**typed.posted, NAME: text})
    names = [*now, *(name for name in sent.state if name not in now)]
    mine = {name: _merged(name, before, now, sent.state) for name in names}
    merged = {name: value for name, (there, value) in mine.items() if there}
    rows = veil.rows(patch.changes(dict(now), merged))
    kept = {**typed.posted, NAME: written(merged, veil)}
    return replace(typed, posted=kept, state=merged if rows else None, rows=rows)


def _merged(name: str, before: Mapping[str, Any], now: Mapping[str, Any], mine: Mapping[str, Any]) -> tuple[bool, Any]:
    """Return (whether the field is there, its value)."""
    there = name in mine
    untouched = there == (name in before) and (not there or patch.same(mine[name], before[name]))
    chosen = now if untouched else mine
    return name in chosen, chosen.get(name)
