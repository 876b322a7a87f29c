"""The facts that a rule's expression sees: one action of a proposal, with what is known of the gate. Pure.

Standard names come first, and the action's arguments stand beside them under their own: `amount`, `customer.tier`. An
argument that is called like a standard name is read as `arguments.risk`. A decimal that is a text is a number here,
where the action's schema says that it is one; `amount` is one without a schema too. Written in any other way, such as
in digits of another alphabet, it is left out, so that people decide. approvals.policy.rules.expressions says how a
number stays exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from approvals.cards.action import Action
from approvals.cards.card import RISKS, Card
from approvals.forms.shapes import is_decimal
from approvals.schema.walk import schema_at
from checkpoints.values import json_pointer

from .expressions import DIGITS, PARTIAL, VALUES

STANDARD = (
    "tool", "action", "actions", "arguments", "agent", "step", "risk", "requester", "attempt", "external", "resource",
    "irreversible",
)  # fmt: skip
AMOUNT = "amount"
_DECIMAL = re.compile(r"[+-]?\d{1,40}(\.\d{1,40})?", re.ASCII)
_LEFT_OUT = object()


@dataclass
class _Seen:
    """The number of values that an expression may still see, and whether any is left out."""

    left: int = VALUES
    partial: bool = False


@dataclass(frozen=True, kw_only=True)
class GateFacts:
    """Facts of a gate beside its actions, for rules."""

    agent: str
    step: str
    requester: str = ""  # the username of the person who started the run, or answers for the program that asks
    attempt: int = 1
    external: bool = False


def of_proposal(card: Card, gate: GateFacts) -> list[dict[str, Any]]:
    """Return the facts of each action of a proposal; of a proposal without actions, one with the gate's alone."""
    actions = [_of_action(action, card) for action in card.actions]
    known = {**vars(gate), "actions": actions, "resource": card.resource}
    if not actions:
        return [known | {"risk": card.risk}]
    known[PARTIAL] = any(each.pop(PARTIAL) for each in actions)
    return [_named(each) | known | {name: each[name] for name in _OF_ACTION} | {"action": each} for each in actions]


_OF_ACTION = ("tool", "arguments", "risk", "irreversible")


def _named(action: Mapping[str, Any]) -> dict[str, Any]:
    """Return an action's arguments by their names, where a rule can write them."""
    said = action["arguments"]
    return {name: value for name, value in said.items() if name.isidentifier()} if isinstance(said, dict) else {}


def _of_action(action: Action, card: Card) -> dict[str, Any]:
    seen = _Seen()
    said = _plain(action.arguments, action.schema, "", seen)
    said = {} if said is _LEFT_OUT or seen.left < 0 else said  # a rule that reads them is unclear
    given = [card.risk, *([action.registered.risk] if action.registered else [])]  # the higher one counts
    made: dict[str, Any] = {
        "id": action.id,
        "tool": action.tool,
        "arguments": said,
        "risk": max(given, key=lambda risk: RISKS.index(risk) if risk in RISKS else len(RISKS)),
        "irreversible": action.irreversible,
        "resource": card.resource,
        PARTIAL: seen.partial,
    }
    if isinstance(said, dict):
        made |= {name: said[name] for name in (AMOUNT, "currency") if name in said}
    return made


def _plain(value: Any, schema: Mapping[str, Any], at: str, seen: _Seen) -> Any:
    """Return a value as an expression sees it; numbers that it could not compare exactly are left out."""
    seen.left -= 1
    if seen.left < 0:
        seen.partial = True
        return None
    if isinstance(value, Mapping):
        members = {name: _plain(each, schema, json_pointer.join(at, name), seen) for name, each in value.items()}
        return {name: each for name, each in members.items() if each is not _LEFT_OUT}
    if isinstance(value, list | tuple):
        items = [_plain(each, schema, json_pointer.join(at, str(number)), seen) for number, each in enumerate(value)]
        return _LEFT_OUT if _LEFT_OUT in items else items  # without one, the others would stand in its place
    if isinstance(value, bool) or value is None:
        return value
    named = json_pointer.split_pointer(at)[-1:] == [AMOUNT]
    if isinstance(value, str) and not (named or is_decimal(schema_at(schema, at))):
        return value
    exact = _number(value)
    seen.partial |= exact is _LEFT_OUT
    return exact


def _number(said: Any) -> Any:
    """Return a number that can be compared exactly: at most `DIGITS` significant digits."""
    written = str(said)
    if not _DECIMAL.fullmatch(written):  # 1e300, nan, inf, a text that is no number
        return _LEFT_OUT
    whole, _, rest = written.lstrip("+-").partition(".")
    digits = (whole + rest.rstrip("0")).lstrip("0")
    if len(digits) > DIGITS:
        return _LEFT_OUT
    return int(written.partition(".")[0]) if not rest.rstrip("0") else float(written)


def fields_of(facts: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the names that a rule could write on these facts: `amount`, `customer.tier`, those of actions included."""
    found: dict[str, None] = {}
    for each in facts:
        for name, value in each.items():
            if name not in (PARTIAL, "actions", "action", "arguments"):
                found |= dict.fromkeys(_paths(name, value))
    return sorted(found)


def _paths(name: str, value: Any) -> list[str]:
    if isinstance(value, Mapping) and value:
        return [path for part, each in value.items() if part.isidentifier() for path in _paths(f"{name}.{part}", each)]
    return [name]
