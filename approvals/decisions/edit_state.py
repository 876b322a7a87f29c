"""Applies an edit of the whole saved state, where the gate's policy allows one. Reads no tables.

An edit may change an action's arguments, but not remove them, nor change what the gate itself writes. The agent's own
validator judges the rest, as with any edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from approvals.cards import answer as answering
from approvals.cards.card import Card, state_veil
from approvals.engine_rules.permissions import DECISION
from approvals.errors import EditRefused, Invalid, Problem, make_problem
from approvals.models import Gate
from approvals.schema import redact
from checkpoints.errors import ValueRefused
from checkpoints.runs.plans import spec_of
from checkpoints.values import json_pointer, patch

from . import edit
from .edit import CurrentProposal, NextProposal

PART = "state"  # of a problem whose pointer is a place within the whole state
NOT_OFFERED = (
    "This gate's policy does not let the state be edited as a whole: change the values of its actions, "
    "or ask for a policy that allows it."
)
BOTH = "Change the values of the actions or the whole state, not both at once."


def taken_at(gate: Gate) -> bool:
    """Tell whether a gate takes an edit of the whole state: if its policy allows that and the run waits at it."""
    plan = spec_of(gate.run.plan)
    return gate.policy.whole_state and all(step.waits for step in plan.steps if step.name == gate.step)


def rewritten(current: CurrentProposal, wanted: Mapping[str, Any]) -> NextProposal:
    """Propose the state `wanted` instead of the current one.

    An unchanged field stays byte for byte, a changed one takes its normal form, a field left out is removed.
    Raises EditRefused or Invalid with every problem at once, each by its pointer within the state.
    """
    before = current.state
    try:
        wanted = state_veil(spec_of(current.plan), current.card).restore(dict(wanted), before)
    except ValueRefused as refused:
        raise Invalid([fault(refused.reason, refused.pointer)]) from refused
    if patch.are_same(wanted, before):
        raise Invalid([fault(edit.NOTHING)])
    _refuse_kept(current, before, wanted)
    valid = edit.normal(current.plan, dict(wanted), fault)
    unknown = [fault("The agent's state has no such place; take it out.", at) for at in edit.dropped(wanted, valid)]
    if unknown:
        raise EditRefused(unknown)
    stays = {name for name in wanted if name in before and patch.are_same(wanted[name], before[name])}
    state = {name: before[name] if name in stays else valid[name] for name in wanted}
    return edit.drawn(current, state)


def beyond(card: Card, operations: Iterable[Mapping[str, Any]]) -> bool:
    """Tell whether a JSON Patch of the state changes anything that the actions do not show."""
    return any(not _shown(card, str(each["path"])) for each in operations)


def rows_beyond(card: Card, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the differences of two states that no action shows, as rows for a diff."""
    names = [name for name in {**before, **after} if before.get(name) is not after.get(name) or name not in before]
    old, new = ({name: state[name] for name in names if name in state} for state in (before, after))
    return [row for row in patch.list_changes(old, new) if not _shown(card, row["pointer"])]


def hidden(rows: Iterable[Mapping[str, Any]], card: Card, veil: redact.Redaction) -> list[dict[str, Any]]:
    """Mask the secrets in the rows between two versions of a proposal; each row names its part in `of`."""
    found = []
    for row in rows:
        part, _, name = str(row.get("of", "")).partition(":")
        action = card.action(name) if name else None
        if part == "action" and action is not None:
            found.append(action.redaction.row(row))
        elif part == "verdict" and action is not None:
            inner = {"properties": {"response": action.response}}
            found.append(redact.veil(inner, card.source, action.response).row(row))
        elif part == "answer":
            found.append(answering.row(card, row))
        else:
            found.append(veil.row(row) if part == PART else dict(row))
    return found


def fault(message: str, at: str = "") -> Problem:
    """Return a problem at a place within the state."""
    return make_problem(message, part=PART, pointer=at, at=at)


def _shown(card: Card, place: str) -> bool:
    return any(action.pointer and json_pointer.covers_place(action.pointer, place) for action in card.actions)


def _refuse_kept(current: CurrentProposal, before: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise EditRefused where the edit removes an action's arguments, or changes what the gate itself writes."""
    pointers = [action.pointer for action in current.card.actions if action.pointer]
    asked = [pointer for pointer in pointers if not json_pointer.has_value(wanted, pointer)]
    own = [name for name in (current.spec.feedback, DECISION) if name and not _alike(name, before, wanted)]
    refused = [fault("The gate asks about this, so it has to stay; reject it instead.", at) for at in asked]
    refused += [fault("The gate writes this itself; leave it as it is.", json_pointer.join("", name)) for name in own]
    if refused:
        raise EditRefused(refused)


def _alike(name: str, before: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    if name not in before or name not in wanted:
        return name not in before and name not in wanted
    return patch.are_same(before[name], wanted[name])
