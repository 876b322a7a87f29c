"""A gate that an external program opens: its policy, its card, checked before the run is released, and its approval.

A program asks under the policy that it names, or the only one that its token allows. The approval of a mere question is
handed out to one caller: its program only asked, so no grant says that it was used. The record is an event of the gate,
written under its lock before the answer is sent. Whoever is killed in between has been told by the record and knows
nothing, so that people are asked again rather than one approval counted twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.auth.models import Group
from django.db import transaction

from agents.errors import FieldError
from agents.models import Token
from agents.runner import engine
from agents.session.performer import Returned
from agents.session.run_session import RunSession
from agents.work_errors import ToolMismatched, ToolNotRegistered, TooManyGates, WorkInvalid, WorkNotAllowed, WorkRefused
from approvals import tools as registered_tools
from approvals.cards import drawing
from approvals.cards.card import Card, completed
from approvals.errors import AskedTooOften, CardRefused, NoSuchPolicy, NotRegistered, ToolRefused
from approvals.models import Gate, Outcome, Policy, Tool
from approvals.models.policy import DEFAULT
from approvals.schema import validate, walk
from checkpoints.actors import Actor
from checkpoints.errors import ValueRefused
from checkpoints.models import Event, Run
from checkpoints.runs.plans import PlanSpec, StepSpec, spec_of
from checkpoints.store import named_files
from checkpoints.values import canonical_json, json_pointer

from .plans import Fault, list_errors
from .session_cache import RemotePerformer
from .turns import RemoteTurn, check_next, go_further

KIND = "gate.handed_out"
APPROVES = (Outcome.Kind.APPROVED, Outcome.Kind.EDITED)


def policy_of(token: Token | None, policy_name: str) -> str:
    """Return the policy of a gate posted without a plan: the one it names, or the token's. Raises WorkNotAllowed."""
    only = token.policy if token else ""
    if policy_name and only and policy_name != only:
        raise _not_for(only)
    return policy_name or only


def check_plan(token: Token | None, steps: Sequence[StepSpec]) -> None:
    """Raise WorkInvalid where a gate of the plan names another policy than the token's only one."""
    only = token.policy if token else ""
    wrong = [n for n, step in enumerate(steps) if step.kind == "gate" and not _same(step.policy, only)]
    if wrong:
        words = f"this token asks only under the policy {only}: name it"
        raise WorkInvalid(list_errors((f"/steps/{number}/policy", words) for number in wrong))


def check_gate(token: Token | None, gate: StepSpec, team: Group) -> None:
    """Check the same for a gate whose plan somebody else may have registered, for any team.

    Raises WorkNotAllowed, and WorkInvalid for a policy that the team does not have: its default may ask for less.
    """
    if token and not _same(gate.policy, token.policy):
        raise _not_for(token.policy)
    try:
        Policy.objects.expect(gate.policy, team=team, exact=True)
    except NoSuchPolicy as error:
        raise WorkInvalid.at("/step", str(error)) from error


def check_run(token: Token | None, run: Run) -> None:
    """Raise WorkNotAllowed where a gate of the run, which another token may have posted, is asked under another one."""
    gates = [step for step in spec_of(run.plan).steps if step.kind == "gate"]
    if token and not all(_same(gate.policy, token.policy) for gate in gates):
        raise _not_for(token.policy)


def _same(named: str, only: str) -> bool:
    return not only or (named or DEFAULT) == only


def _not_for(only: str) -> WorkNotAllowed:
    return WorkNotAllowed(
        f"This token may ask only under the policy {only}. Name it in the gate or in the plan, or use another token."
    )


def ask(
    session: RunSession, step: str, card: Card, *, token: Token | None, took: float = 0.0, notes: Sequence[str] = ()
) -> RemoteTurn:
    """Open the gate `step` with this card. Raises OutOfTurn, WorkInvalid, WorkNotAllowed, TooManyGates and Fenced."""
    spec = check_next(session, step, "gate")
    check_gate(token, spec, session.run.team)
    policy = Policy.objects.named(spec.policy, team=session.run.team)
    known: dict[str, Any] = {"step": spec, "plan": session.plan, "state": session.snapshot.state}
    whole = checked(card, **known, team=session.run.team, policy=policy)
    if faults := list_errors(_files(whole, session)):
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
    if faults := list_errors(_places(card, state)):
        raise WorkInvalid(faults)
    try:
        whole = completed(card, step=step, plan=plan, state=state)
        whole = draw_card(whole, team=team, policy=policy, plan=plan, tools=tools)
    except (CardRefused, ValueRefused) as error:
        raise WorkInvalid.at("", str(error)) from error
    if faults := faults_of(whole) or list_errors(_pins(whole)):
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
        faults = ((f"/actions/{fault.number}{fault.pointer}", fault.message) for fault in error.faults)
        raise refusal(list_errors(faults)) from error


def faults_of(card: Card) -> list[FieldError]:
    """List the faults of a card: a gate that fails its own schema could not be approved as it is."""
    with validate.counted():
        return list_errors(_faults(card))


def _faults(card: Card) -> Iterator[Fault]:
    for number, action in enumerate(card.actions):
        at = f"/actions/{number}"
        if action.schema and (wrong := validate.unusable(action.schema)):
            yield f"{at}/schema", wrong
            continue
        for place, message in validate.faults_of(action.schema, action.arguments) if action.schema else ():
            if message == str(validate.UNREADABLE):
                yield f"{at}/schema", "it cannot be used: it refers to something that it does not contain, or too often"
            else:
                yield f"{at}/arguments{place}", message


def _places(card: Card, state: Mapping[str, Any]) -> Iterator[Fault]:
    """Check the actions' ids, that all pointers lead into the state, and that drawings lead to texts."""
    ids = [action.id for action in card.actions]
    if not ids:
        yield "/actions", "a gate needs at least one action"
    for number, action in enumerate(card.actions):
        if action.id in ids[:number]:
            yield f"/actions/{number}/id", f"{action.id!r} is used twice"
        if action.pointer and not json_pointer.has_value(state, action.pointer):
            yield f"/actions/{number}/pointer", f"there is nothing at {action.pointer} in the state"
            continue
        arguments = json_pointer.find_value(state, action.pointer) if action.pointer else action.arguments
        for place, member, fault in drawing.faults_of(action.draws, arguments):
            yield f"/actions/{number}/draws/{place}/{member}", fault
    for number, quote in enumerate(card.quotes):
        if not json_pointer.has_value(state, quote.pointer):
            yield f"/quotes/{number}/pointer", f"there is nothing at {quote.pointer} in the state"


def _files(card: Card, session: RunSession) -> Iterator[Fault]:
    """Check the files in a gate's arguments before the step that asks fails of them."""
    team, lineage, state = session.run.team_id, session.snapshot.lineage, session.snapshot.state
    for number, action in enumerate(card.actions):
        for at in named_files.foreign(action.arguments, team=team, lineage=lineage, state=state):
            yield f"/actions/{number}/arguments{at}", named_files.FOREIGN


def _pins(card: Card) -> Iterator[Fault]:
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
                yield f"/actions/{number}/pinned/{place}", words


class HandedOut(NamedTuple):
    """The record of an approval: when it was handed out, whether to this caller, and whether just now."""

    at: datetime
    yours: bool
    first: bool


def hand_out(gate_id: int, *, to: str, by: Actor) -> HandedOut:
    """Hand the approval at a gate out to the caller of this name, unless somebody has it. Raises WorkRefused.

    One transaction, or part of the caller's.
    """
    mark = hashlib.sha256(to.encode()).hexdigest()
    with transaction.atomic():
        gate = Gate.objects.select_for_update(of=["self"]).select_related("run", "policy", "team").get(pk=gate_id)
        outcome: Outcome | None = getattr(gate, "outcome", None)
        if outcome is None or outcome.kind not in APPROVES:
            raise WorkRefused("There is no approval at this gate to hand out. Read its outcome.")
        if outcome.lets_run:
            raise WorkRefused("What this gate approved is done by its run, once: claim the run and begin its effect.")
        record = Event.objects.filter(run_id=gate.run_id, kind=KIND, subject=gate.subject)
        if first := not record.exists():
            gate.say("gate.handed_out", by=by, data={"to": mark})
        event = record.earliest("pk")
        return HandedOut(event.at, canonical_json.decode_canonical(bytes(event.data))["to"] == mark, first)
