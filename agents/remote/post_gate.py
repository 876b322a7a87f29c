"""A gate posted without a run: the plan that it implies, and the run that is started for it.

A program that only wants to ask before it does something needs no plan of its own. Its card implies one: a gate,
and after it an effect for each action, by the action's id. The state holds each action's arguments under its id, its
result under `<id>_result`, and beside them whatever the program wants to show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import transaction

from agents.definition import fields
from agents.definition.options import EffectOptions
from agents.errors import FieldError, InputRefused, WorkInvalid
from agents.models import Client, Token
from agents.runs.start import checked
from agents.text import one_line
from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.decisions import uploads
from approvals.schema.walk import rewritten
from checkpoints import store
from checkpoints.actors import Actor
from checkpoints.errors import ValueRefused
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store import claims
from checkpoints.values import json_pointer
from checkpoints.values.canonical_json import canonical

from . import asking, plans
from .session_cache import SESSIONS, session_of
from .turns import RemoteTurn

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


def implied(posted: PostedGate) -> PlanSpec:
    """Return the plan of such a run; its version is a digest of it."""
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
    digest = hashlib.sha256(canonical(spec.to_json())).hexdigest()
    return replace(spec, version=f"{VERSION}{digest[:12]}")


def shaped(value: Any, depth: int = 0) -> dict[str, Any]:
    """Return a schema for a value that came without one, so that people get a field for each of its members."""
    if isinstance(value, dict) and 0 < len(value) <= MEMBERS and depth < DEPTH:
        return {
            "type": "object",
            "properties": {name: shaped(each, depth + 1) for name, each in value.items()},
            "required": sorted(value),
            "additionalProperties": False,
        }
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": kinds[type(value)]} if type(value) in kinds else {}


def post(
    posted: PostedGate, *, by: Actor, team: Group, owner: User, token: Token | None, worker: str, deferred: bool
) -> RemoteTurn:
    """Start the run and open its gate, in one transaction. Raises PlanRefused, InputRefused and WorkInvalid."""
    if faults := [*_name_faults(posted)] or [*_file_faults(posted)]:
        raise WorkInvalid(faults)
    posted = replace(posted, card=_shaped(posted, team))
    with transaction.atomic():
        values = {**posted.state, **{action.id: action.arguments for action in posted.card.actions}}
        try:
            plan = plans.keep(implied(posted))
            known = plans.registered(plan.pk) or plans.declared(plan)
            state = fields.whole(checked(known.agent.State, values))
            run = store.start(
                plan=plan, team=team, title=one_line(posted.card.title, 200), values=state,
                first_step=GATE, by=by, started_by=owner, thread=posted.thread,
            )  # fmt: skip
        except ValueRefused as error:
            raise InputRefused([FieldError(pointer=error.pointer, message=error.reason)]) from error
        except InputRefused as error:
            if faults := asking.faults_of(posted.card):  # the errors point into what was sent
                raise WorkInvalid(faults) from error
            raise
        claim = claims.claim(
            run.pk, plan_ids=[plan.pk], worker=one_line(worker, 120), lease=claims.TAKE_OVER_LEASE, by=by
        )
        if claim is None:
            raise LookupError(f"{run} was claimed by somebody else in the transaction that made it")
        Client.came(run, name=one_line(worker, 120), token=token, owner=owner.pk, deferred=deferred)
        session = session_of(claim, owner.pk)
        turn = asking.ask(session, GATE, _placed(posted), token=token)
    SESSIONS.take(run.pk)
    return turn


def _shaped(posted: PostedGate, team: Group) -> Card:
    """Return the card with a schema for each action: for a registered tool its own, whatever was sent.

    Raises ToolNotRegistered and ToolMismatched.
    """
    named = [replace(each, tool=each.tool or each.id) for each in posted.card.actions]
    known = asking.drawn(replace(posted.card, actions=named), team=team, policy=posted.policy).actions
    pairs = zip(posted.card.actions, known, strict=True)
    actions = [replace(each, schema=drawn.schema or shaped(each.arguments)) for each, drawn in pairs]
    return replace(posted.card, actions=actions)


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
        found |= {f"{action.id}.{name}": _moved(each, action.id) for name, each in own.items()}
    return found


def _moved(schema: Mapping[str, Any], action: str) -> Any:
    """Return an action's schema without its definitions, with its references changed to where they are now."""

    def referring(part: Mapping[str, Any], place: str | None) -> Mapping[str, Any]:
        ref = part.get("$ref")
        own = isinstance(ref, str) and ref.startswith(DEFINED)
        return {**part, "$ref": f"{DEFINED}{action}.{str(ref).removeprefix(DEFINED)}"} if own else part

    return rewritten({name: each for name, each in schema.items() if name != "$defs"}, referring, values=True)


def _placed(posted: PostedGate) -> Card:
    """Return the card with pointers to its actions' arguments in the state, and the effects that perform them."""
    actions = [
        replace(action, effect="" if posted.ask_only else action.id, pointer=f"/{action.id}", arguments=None)
        for action in posted.card.actions
    ]
    return replace(posted.card, actions=actions)


def _file_faults(posted: PostedGate) -> Iterator[FieldError]:
    """List every file as a fault: a run about to start has none, and its gate would hand out another run's."""
    named = {"/state": posted.state}
    named |= {f"/actions/{number}/arguments": each.arguments for number, each in enumerate(posted.card.actions)}
    for place, value in named.items():
        for at in uploads.foreign(None, value):
            yield FieldError(pointer=place + at, message=uploads.FOREIGN_TO_RUN)


def _name_faults(posted: PostedGate) -> Iterator[FieldError]:
    """List the names that cannot be fields of the state, and those that two things would share."""
    ids = [action.id for action in posted.card.actions]
    reserved = {FEEDBACK, GATE, *(name + RESULT for name in ids)}
    spelling = "must have only letters, digits and _, and begin with a letter"
    if not ids:
        yield FieldError(pointer="/actions", message="a gate needs at least one action")
    for number, name in enumerate(ids):
        at = f"/actions/{number}/id"
        if name in ids[:number]:
            yield FieldError(pointer=at, message=f"{name} is used twice")
        if name in reserved:
            yield FieldError(pointer=at, message=f"{name} is a reserved name; choose another")
        if not plans.FIELD.fullmatch(name):
            yield FieldError(pointer=at, message=spelling)
    for name in posted.state:
        at = json_pointer.join("/state", name)
        if name in reserved or name in ids:
            yield FieldError(pointer=at, message="is the name of an action or a reserved name; choose another")
        if not plans.FIELD.fullmatch(name):
            yield FieldError(pointer=at, message=spelling)
