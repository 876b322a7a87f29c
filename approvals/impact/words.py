"""Predicts the fields that a person's words will change, before they are written. Pure, over a plan."""

from __future__ import annotations

from collections.abc import Sequence

from approvals.cards.action import Action
from approvals.engine_rules.permissions import MIXED
from approvals.schema.walk import Schema, resolve_part, schema_at
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values import json_pointer

from .records import Steps


def by_action(
    plan: PlanSpec, spec: StepSpec, decision: str, refused: Sequence[Action]
) -> tuple[frozenset[str], dict[str, Steps]]:
    """Return `words_in` for a decision by action: always for refusals, for edits where items name their action."""
    field = spec.feedback
    told = words_in(plan, field, said_at=spec.name)
    if refused:
        return told
    names = names_actions(plan, field) if field and decision in ("edited", MIXED) else False
    if names is None:
        return frozenset(), {field: frozenset({spec.name})}
    return told if names else (frozenset(), {})


def words_in(plan: PlanSpec, field: str, *, said_at: str) -> tuple[frozenset[str], dict[str, Steps]]:
    """Return (novel fields, unknown fields) where a person's words go into the list `field`; "" for nowhere.

    Items without a time may repeat, so the field is unknown, dependent on the step `said_at`; with one it is novel.
    """
    if not field:
        return frozenset(), {}
    if keeps_time(plan, field):
        return frozenset({field}), {}
    return frozenset(), {field: frozenset({said_at} - {""})}


def names_actions(plan: PlanSpec, field: str) -> bool | None:
    """Tell whether the items of a list of feedback name their action; None where that is not certain."""
    if "properties" not in plan.state_schema:
        return None
    items = _items(plan, field)
    if "action" in items.get("properties", {}):
        return True
    closed = items.get("type") == "object" and "properties" in items and items.get("additionalProperties") is not True
    return False if closed or items.get("type") in ("string", "integer", "number", "boolean") else None


def keeps_time(plan: PlanSpec, field: str) -> bool:
    """Tell whether the items of a list of feedback hold their time, so that no two are equal."""
    if "properties" not in plan.state_schema:
        return True
    items = _items(plan, field)
    if items.get("type") == "object" and "properties" not in items:
        return items.get("additionalProperties", True) is True
    return "at" in items.get("properties", {}) and items["properties"]["at"].get("type", "string") == "string"


def _items(plan: PlanSpec, field: str) -> Schema:
    """Return the schema of the list's items."""
    return resolve_part(schema_at(plan.state_schema, json_pointer.join("", field, "0")), plan.state_schema)
