"""A gate that an external program opens: its card, checked before the run is released."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import Group

from agents.errors import FieldError
from agents.models import Token
from agents.runner import engine
from agents.session.performer import Returned
from agents.session.run_session import RunSession
from agents.work_errors import ToolMismatched, ToolNotRegistered, TooManyGates, WorkInvalid
from approvals import tools as registered_tools
from approvals.cards import drawing
from approvals.cards.card import Card, completed
from approvals.errors import AskedTooOften, CardRefused, NotRegistered, ToolRefused
from approvals.models import Policy, Tool
from approvals.schema import validate, walk
from checkpoints.errors import ValueRefused
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store import named_files
from checkpoints.values import json_pointer

from . import policy_of_token
from .remote_performer import RemotePerformer
from .turns import RemoteTurn, check_next, go_further


def ask(
    session: RunSession, step: str, card: Card, *, token: Token | None, took: float = 0.0, notes: Sequence[str] = ()
) -> RemoteTurn:
    """Open the gate `step` with this card. Raises OutOfTurn, WorkInvalid, WorkNotAllowed, TooManyGates and Fenced."""
    spec = check_next(session, step, "gate")
    policy_of_token.check_gate(token, spec, session.run.team)
    policy = Policy.objects.named(spec.policy, team=session.run.team)
    known: dict[str, Any] = {"step": spec, "plan": session.plan, "state": session.snapshot.state}
    whole = checked(card, **known, team=session.run.team, policy=policy)
    if faults := list(_files(whole, session)):
        raise WorkInvalid(faults)
    session.performer = RemotePerformer(spec.name, Returned(card, took, [session.clean(note) for note in notes]))
    try:
        return go_further(session, engine.turn(session))
    except AskedTooOften as full:
        raise TooManyGates(full) from full


def checked(
    card: Card, *, step: StepSpec, plan: PlanSpec, state: Mapping[str, Any], team: Group, policy: Policy,
    tools: Mapping[str, Tool] | None = None,
) -> Card:  # fmt: skip
    """Return the card as it will be shown. Raises WorkInvalid, ToolNotRegistered and ToolMismatched."""
    if faults := list(_places(card, state)):
        raise WorkInvalid(faults)
    try:
        whole = completed(card, step=step, plan=plan, state=state)
        whole = draw_card(whole, team=team, policy=policy, plan=plan, tools=tools)
    except (CardRefused, ValueRefused) as error:
        raise WorkInvalid([FieldError(pointer="", message=str(error))]) from error
    if faults := faults_of(whole) or list(_pins(whole)):
        raise WorkInvalid(faults)
    return whole


def draw_card(
    card: Card, *, team: Group, policy: Policy, plan: PlanSpec | None = None, tools: Mapping[str, Tool] | None = None
) -> Card:
    """Return the card as people registered its tools. Raises ToolNotRegistered and ToolMismatched."""
    try:
        return registered_tools.draw_card(card, team=team, policy=policy, plan=plan, tools=tools)
    except ToolRefused as error:
        refusal = ToolNotRegistered if isinstance(error, NotRegistered) else ToolMismatched
        faults = [(f"/actions/{fault.number}{fault.pointer}", fault.message) for fault in error.faults]
        raise refusal([FieldError(pointer=at, message=message) for at, message in faults]) from error


def faults_of(card: Card) -> list[FieldError]:
    """List the faults of a card: a gate that fails its own schema could not be approved as it is."""
    with validate.counted():
        return list(_faults(card))


def _faults(card: Card) -> Iterator[FieldError]:
    for number, action in enumerate(card.actions):
        at = f"/actions/{number}"
        if action.schema and (wrong := validate.unusable(action.schema)):
            yield FieldError(pointer=f"{at}/schema", message=wrong)
            continue
        for place, message in validate.faults_of(action.schema, action.arguments) if action.schema else ():
            unread = message == str(validate.UNREADABLE)
            yield FieldError(
                pointer=f"{at}/schema" if unread else f"{at}/arguments{place}",
                message="it cannot be used: it refers to something that it does not contain, or too often"
                if unread
                else message,
            )


def _places(card: Card, state: Mapping[str, Any]) -> Iterator[FieldError]:
    """Check the actions' ids, that all pointers lead into the state, and that drawings lead to texts."""
    ids = [action.id for action in card.actions]
    if not ids:
        yield FieldError(pointer="/actions", message="a gate needs at least one action")
    for number, action in enumerate(card.actions):
        if action.id in ids[:number]:
            yield FieldError(pointer=f"/actions/{number}/id", message=f"{action.id!r} is used twice")
        if action.pointer and not json_pointer.has_value(state, action.pointer):
            words = f"there is nothing at {action.pointer} in the state"
            yield FieldError(pointer=f"/actions/{number}/pointer", message=words)
            continue
        arguments = json_pointer.find_value(state, action.pointer) if action.pointer else action.arguments
        for place, member, fault in drawing.faults_of(action.draws, arguments):
            yield FieldError(pointer=f"/actions/{number}/draws/{place}/{member}", message=fault)
    for number, quote in enumerate(card.quotes):
        if not json_pointer.has_value(state, quote.pointer):
            words = f"there is nothing at {quote.pointer} in the state"
            yield FieldError(pointer=f"/quotes/{number}/pointer", message=words)


def _files(card: Card, session: RunSession) -> Iterator[FieldError]:
    """Check the files in a gate's arguments before the step that asks fails of them."""
    team, lineage, state = session.run.team_id, session.snapshot.lineage, session.snapshot.state
    for number, action in enumerate(card.actions):
        for at in named_files.foreign(action.arguments, team=team, lineage=lineage, state=state):
            yield FieldError(pointer=f"/actions/{number}/arguments{at}", message=named_files.FOREIGN)


def _pins(card: Card) -> Iterator[FieldError]:
    """Check that every pin exists: a misspelt pin would leave the dangerous value among the others.

    An optional argument that was left out may be pinned if the schema has it.
    """
    for number, action in enumerate(card.actions):
        if action.registered:  # pinned by people, who may pin what is left out
            continue
        spoken_of = walk.list_parts([action.schema], action.schema)
        named = {json_pointer.join("", name) for part in spoken_of for name in walk.property_schemas(part)}
        for place, pin in enumerate(action.pinned):
            if not json_pointer.has_value(action.arguments, pin) and pin not in named:
                words = f"there is nothing at {pin} in the arguments; a pin must be a JSON Pointer into them"
                yield FieldError(pointer=f"/actions/{number}/pinned/{place}", message=words)
