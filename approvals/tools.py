"""Draws the actions of registered tools as people registered them, and refuses those that do not fit.

Done where a gate is opened, and so for every agent: an external program is told what does not fit, and an agent of this
server stops at a recovery gate, as it does where its team lacks the policy that it names. The tool's version goes into
the proposal's body with the drawn card, so a decision binds how it was drawn.

The schema of a tool's arguments is checked before it is registered; its labels are the titles in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import Group

from approvals.cards import binding
from approvals.cards.action import Action, ToolVersion, pinned_faults
from approvals.cards.card import RISKS, Card
from approvals.errors import NotRegistered, ToolFault, ToolMismatch
from approvals.models import Policy, Tool
from approvals.schema import redact, validate
from approvals.schema.walk import (
    Schema,
    find_references,
    rewrite_schema,
    schema_at,
    unfollowed_reference,
    unveil_schema,
    walk_members,
)
from checkpoints.errors import ValueRefused
from checkpoints.runs.plans import PlanSpec
from checkpoints.values import json_pointer
from checkpoints.values.canonical_json import encode_canonical

LARGEST = 64 * 1024  # bytes
ARGUMENTS = 200  # arguments of one tool, with those in objects and lists
LABEL = 100  # characters
_OPEN = ("additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref", "unevaluatedProperties")


def fault(schema: Any) -> str:
    """Say what is wrong with a schema of arguments; "" for one that can be registered."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        return 'Arguments are an object by name: write {"type": "object", "properties": {…}}.'
    if len(encode_canonical(schema)) > LARGEST:
        return f"It is longer than {LARGEST // 1024} KB. List fewer arguments."
    if wrong := validate.unsound(schema):
        return f"It cannot be used: {wrong}."
    elsewhere = (ref for ref in find_references(schema) if not str(ref).startswith("#/$defs/"))
    if outside := next(elsewhere, "") or unfollowed_reference(schema):
        words = f"It refers to {str(outside)[:LABEL]!r}; refer to #/$defs/… in the schema itself."
        return words
    if sum(1 for _ in walk_members(schema)) > ARGUMENTS:
        return f"It has more than {ARGUMENTS} arguments. List fewer arguments."
    return ""


def closed(schema: Schema) -> dict[str, Any]:
    """Forbid arguments that the schema does not name, except where it says whether others are allowed."""

    def named_alone(part: Schema, place: str | None) -> Schema:
        named = isinstance(part.get("properties"), Mapping) and part.get("type") == "object"
        return {**part, "additionalProperties": False} if named and not any(name in part for name in _OPEN) else part

    made: dict[str, Any] = rewrite_schema(schema, named_alone)
    return made


def knows(schema: Schema, pointer: str) -> bool:
    """Tell whether the schema describes the argument at `pointer`."""
    try:
        return pointer != "" and bool(schema_at(schema, pointer))
    except ValueRefused:
        return False


def labels(schema: Schema) -> dict[str, str]:
    """Return pointer -> label of each argument."""
    return {place: part["title"] for place, part in walk_members(schema) if isinstance(part.get("title"), str)}


def labelled(schema: Schema, called: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the schema with these titles of arguments; None removes a title, and other arguments keep theirs."""

    def titled(part: Schema, place: str | None) -> Schema:
        if place is None or place not in called:
            return part
        title, rest = called[place], {name: item for name, item in part.items() if name != "title"}
        return {**rest, "title": title} if title else rest

    made: dict[str, Any] = rewrite_schema(schema, titled)
    return made


def unlabelled(schema: Schema) -> dict[str, Any]:
    """Return the schema without the titles that `labels` reads."""
    return labelled(schema, dict.fromkeys(labels(schema)))


def draw_card(
    card: Card, *, team: Group, policy: Policy, plan: PlanSpec | None = None, recovery: bool = False,
    tools: Mapping[str, Tool] | None = None,
) -> Card:  # fmt: skip
    """Draw the card with each action of a registered tool as people registered it.

    `plan`: its schema says which parts of the state are secret; without one none is. An action of a recovery card that
    does not fit is drawn as the card has it. `tools`: those of its actions that are registered, where the caller has
    read them. Raises NotRegistered and ToolMismatch.
    """
    if not card.actions:
        return card
    granted = binding.pairs(card.actions, card.allows)
    if tools is None:
        tools = Tool.objects.registered([action.tool for action in card.actions], team=team)
    if policy.registered_only and not recovery:
        _refuse_others(card, tools, team, policy, external=bool(plan and plan.external))
    faults = [
        fault for number, action in enumerate(card.actions) for fault in _faults(number, action, tools, plan, granted)
    ]
    if faults and not recovery:
        raise ToolMismatch(faults)
    unfit = {fault.number for fault in faults}
    actions = [
        _draw_action(action, tools[action.tool], plan) if action.tool in tools and number not in unfit else action
        for number, action in enumerate(card.actions)
    ]
    given = [action.registered.risk for action in actions if action.registered]
    return replace(card, actions=actions, risk=max([card.risk, *given], key=RISKS.index))


def _refuse_others(card: Card, tools: Mapping[str, Tool], team: Group, policy: Policy, *, external: bool) -> None:
    """Refuse unregistered tools. `external`: a program names effects freely, so each needs an action that names it."""
    others = [(number, action) for number, action in enumerate(card.actions) if action.tool not in tools]
    words = f"is no tool that {team.name} has registered, and its policy {policy.name} takes registered tools only"
    faults = [ToolFault(number, "/tool", f"{action.tool} {words}") for number, action in others]
    named = {action.effect for action in card.actions}
    loose = [effect for effect in card.allows if external and effect not in named]
    faults += [
        ToolFault(0, "/effect", f"no action names the effect {effect}, so none says its tool") for effect in loose
    ]
    if faults:
        raise NotRegistered(faults)


def _faults(
    number: int, action: Action, tools: Mapping[str, Tool], plan: PlanSpec | None, granted: Sequence[tuple[str, str]]
) -> Iterator[ToolFault]:
    tool = tools.get(action.tool)
    if tool is None:
        return
    for place, message in validate.faults_of(tool.schema, action.arguments):
        yield ToolFault(number, f"/arguments{place}", f"{message}, as {action.tool} is registered")
    for effect in sorted({action.effect, *(word for name, word in granted if name == action.id)} - {""}):
        if plan and plan.external and not _read_by(action, effect, plan):
            fault = f"the arguments of {action.tool} have to be in the state, in a field that {effect} reads"
            yield ToolFault(number, "/pointer", f"{fault}: what is shown is what runs")
    hidden, known = redact.veil_marks(tool.schema), redact.veil_marks(_known(action, plan))
    for place in known.places(action.arguments):
        if not hidden.at(place).secret:
            fault = (
                f"is secret in the agent's plan and not in {action.tool} as it is registered; register it as writeOnly"
            )
            yield ToolFault(number, f"/arguments{place}", fault)
    for fault in pinned_faults(replace(action, pinned=tool.pinned)):
        yield ToolFault(number, "/arguments", fault)
    if tool.irreversible and action.undo:
        yield ToolFault(number, "/undo", f"{action.tool} is registered as one that cannot be undone")


def _read_by(action: Action, effect: str, plan: PlanSpec) -> bool:
    """Tell whether the effect reads the field with the action's arguments."""
    field = json_pointer.split_pointer(action.pointer)[0] if action.pointer else ""
    return any(step.name == effect and field in step.reads for step in plan.steps)


def _draw_action(action: Action, tool: Tool, plan: PlanSpec | None) -> Action:
    final = tool.irreversible or action.irreversible
    return replace(
        action,
        title=tool.title,
        schema=unveil_schema(tool.schema, _known(action, plan)) if plan and not plan.external else dict(tool.schema),
        pinned=tool.pinned,
        irreversible=final,
        undo="" if final else tool.undo or action.undo,
        registered=ToolVersion(version=tool.version, risk=tool.risk),
    )


def _known(action: Action, plan: PlanSpec | None) -> Schema:
    """Return the plan's schema of the action's arguments; all is secret where they are within a secret."""
    if plan is None or not action.pointer:
        return {}
    known = schema_at(plan.state_schema, action.pointer)
    around = redact.veil_marks(plan.state_schema).at(action.pointer).secret
    return {"writeOnly": True} if around else known
