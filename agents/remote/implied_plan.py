"""The plan that a posted gate implies: a gate, and after it an effect for each action, by the action's id. Pure.

The state holds each action's arguments under its id, its result under `<id>_result`, and beside them whatever the
program wants to show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.definition.decorators import EffectOptions
from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.schema.walk import with_references
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values.canonical_json import encode_canonical

GATE, RESULT, FEEDBACK = "ask", "_result", "feedback"
VERSION = "posted-"  # the prefix of such plans' versions
DEPTH, MEMBERS = 4, 40  # of objects that get a field for each member without a schema
DEFINED = "#/$defs/"


@dataclass(frozen=True)
class PostedGate:
    """A posted gate: its card, and the state that it shows."""

    agent: str
    card: Card  # its actions with their arguments, and what undoes each
    state: Mapping[str, Any]
    idempotent: Collection[str]  # ids of the actions that may be done twice with the same key
    policy: str
    thread: str
    ask_only: bool  # it performs nothing: the run ends with the decision


def imply_plan(posted: PostedGate) -> tuple[PlanSpec, bytes]:
    """Return the plan of such a run, and its digest, with which its version begins."""
    ids = [action.id for action in posted.card.actions]
    performed = [] if posted.ask_only else posted.card.actions
    edits = tuple(action.id for action in posted.card.actions if action.arguments or action.schema)
    shown = tuple(posted.state)
    gate = StepSpec(
        GATE, kind="gate", reads=(*shown, *ids), allows=tuple(action.id for action in performed), edits=edits,
        policy=posted.policy, feedback=FEEDBACK, asks=True, doc="Ask people.",
    )  # fmt: skip
    effects = [_effect(action, idempotent=action.id in posted.idempotent) for action in performed]
    properties: dict[str, Any] = {name: {} for name in shown}
    properties |= {action.id: _moved(action.schema, action.id) for action in posted.card.actions}
    properties |= {action.id + RESULT: {} for action in performed}
    properties[FEEDBACK] = {"type": "array", "items": {}}
    schema = {"type": "object", "properties": properties, "required": [*shown, *ids], "$defs": _definitions(posted)}
    doc = "Asks before it acts." if effects else "Asks, and does nothing by itself."
    spec = PlanSpec(posted.agent, "", doc, schema, (gate, *effects))
    digest = hashlib.sha256(encode_canonical(spec.to_json())).digest()
    return replace(spec, version=f"{VERSION}{digest.hex()[:12]}"), digest


def infer_schema(value: Any, depth: int = 0) -> dict[str, Any]:
    """Return a schema for a value that came without one, so that people get a field for each of its members."""
    if isinstance(value, dict) and 0 < len(value) <= MEMBERS and depth < DEPTH:
        return {
            "type": "object",
            "properties": {name: infer_schema(item, depth + 1) for name, item in value.items()},
            "required": sorted(value),
            "additionalProperties": False,
        }
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": kinds[type(value)]} if type(value) in kinds else {}


def _effect(action: Action, *, idempotent: bool) -> StepSpec:
    result = action.id + RESULT
    return StepSpec(
        action.id, kind="effect", reads=(action.id,), writes=(result,), undo=action.undo,
        irreversible=not action.undo, idempotent=idempotent, guarded=True, responds=result, retry=EffectOptions.retry,
        doc=action.tool,  # not its title, which changes each time and would make a new version each time
    )  # fmt: skip


def _definitions(posted: PostedGate) -> dict[str, Any]:
    """Return the definitions of all actions' schemas, prefixed by the action's id: two may share a name."""
    found: dict[str, Any] = {}
    for action in posted.card.actions:
        own = action.schema.get("$defs", {})
        found |= {f"{action.id}.{name}": _moved(item, action.id) for name, item in own.items()}
    return found


def _moved(schema: Mapping[str, Any], action: str) -> Any:
    """Return an action's schema without its definitions, with its references changed to where they are now.

    Its own name ($id) goes too: below the state's schema its references would lead into itself, where nothing is.
    """

    def lead(ref: str) -> str:
        return f"{DEFINED}{action}.{ref.removeprefix(DEFINED)}" if ref.startswith(DEFINED) else ref

    return with_references({name: item for name, item in schema.items() if name not in ("$defs", "$id")}, lead)
