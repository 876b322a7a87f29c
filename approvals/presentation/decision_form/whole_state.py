"""The whole state as JSON in one text area, where a gate's policy lets people edit it.

Invisible characters are written as JSON escapes, as wherever a value is typed as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from approvals.cards.card import Card, state_veil
from approvals.decisions.edit_state import PART, fault, taken_at
from approvals.errors import Problem
from approvals.forms import EDITABLE, MISSING, merging
from approvals.forms.texts import as_json
from approvals.models import Gate, Proposal
from approvals.schema import redact
from approvals.schema.redact import Redaction
from checkpoints.errors import ValueRefused
from checkpoints.runs.plans import spec_of
from checkpoints.values import canonical_json, json_pointer, patch

from . import conflicts
from .actions import TypedDecision
from .conflicts import OpenConflict, ShownConflict

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
    return state_veil(spec_of(gate.run.plan), gate.asked) if taken_at(gate) else redact.OPEN


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
        value = canonical_json.parse_json(text)
    except ValueRefused as refused:
        return replace(typed, errors=[fault(f"Write JSON: {refused.reason}.", refused.pointer)])
    if not isinstance(value, dict):
        return replace(typed, errors=[fault("Write the whole state: an object with its fields.")])
    try:
        value = _settled(form, veil.restore(value, dict(state or {})), state or {})
    except ValueRefused as refused:
        return replace(typed, errors=[fault(f"{refused.reason}.", refused.pointer)])
    if state is not None and patch.are_same(value, dict(state)):
        return TypedDecision()
    return replace(typed, state=value, rows=veil.rows(patch.list_changes(dict(state or {}), value)))


def carried(
    typed: TypedDecision,
    sent: TypedDecision,
    veil: Redaction,
    *,
    before: Mapping[str, Any] | None,
    now: Mapping[str, Any] | None,
) -> tuple[TypedDecision, dict[str, OpenConflict]]:
    """Return `typed` with the text that was sent over the state `before`, merged into the current one, and conflicts.

    A text that is no state is kept as it is.
    """
    text = sent.posted.get(NAME, "")
    if not text or now is None:
        return typed, {}
    if sent.state is None or before is None:
        return replace(typed, posted={**typed.posted, NAME: text}), {}
    merged, opposed = merging.values(dict(before), dict(sent.state), dict(now))
    rows = veil.rows(patch.list_changes(dict(now), merged))
    kept = {**typed.posted, NAME: written(merged, veil)}
    shown = veil.masked(merged, named=True)
    found = {conflicts.of_state(at): OpenConflict(mine=_json(shown, at)) for at in opposed}
    return replace(typed, posted=kept, state=merged if rows else None, rows=rows), found


def conflict_shown(name: str, each: OpenConflict, state: Mapping[str, Any], veil: Redaction) -> ShownConflict:
    """Return a conflict of the whole state for the page."""
    at = conflicts.pointer_of(name)
    label = " ".join(json_pointer.split_pointer(at))
    theirs = _json(veil.masked(dict(state), named=True), at)
    return ShownConflict(
        name=name, action="Whole state", label=label, mine=each.mine, theirs=theirs, counts=each.counts,
        field="whole-state",
    )  # fmt: skip


def _json(state: Any, at: str) -> str:
    value = json_pointer.get(state, at, MISSING)
    return "(not there)" if value is MISSING else as_json(value)


def _settled(form: Mapping[str, str], value: dict[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the typed state with the current values where their sender takes those."""
    for name, each in conflicts.found_in(form).items():
        at = conflicts.pointer_of(name) if conflicts.is_of_state(name) else ""
        outer = json_pointer.get(value, at.rpartition("/")[0])
        if not at or each.counts != conflicts.THEIRS or not isinstance(outer, dict):
            continue
        now = json_pointer.get(dict(state), at, MISSING)
        if now is not MISSING:
            value = patch.put(value, at, now)
        elif json_pointer.has_value(value, at):
            value = patch.apply([{"op": "remove", "path": at}], value)
    return value
