"""Gates posted without a run: for each a run is started that waits at it, by the plan that its card implies.

A program that only wants to ask before it does something needs no plan of its own. Its gates come one by one or
together; those of one request are written by the same few statements, all of them or none.

The plan is a gate, and after it an effect for each action, by the action's id. The state holds each action's arguments
under its id, its result under `<id>_result`, and beside them whatever the program wants to show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.auth.models import Group, User
from django.db import transaction

from agents.definition import fields
from agents.definition.decorators import EffectOptions
from agents.errors import FieldError, InputRefused
from agents.models import Client, Token
from agents.runs.start import validate_input
from agents.work_errors import TooManyGates, WorkInvalid
from approvals.cards import likeness
from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.errors import AskedTooOften, NoSuchPolicy
from approvals.gates import automatic, opening
from approvals.gates.opening import NewGate
from approvals.models import Policy, Tool
from approvals.policy import pacing, separation
from approvals.schema import validate
from approvals.schema.walk import with_references
from approvals.webhooks import outbox
from checkpoints.actors import Actor
from checkpoints.errors import ValueRefused
from checkpoints.events import event_log
from checkpoints.layout.snapshot import RowDraft
from checkpoints.models import Plan, Run
from checkpoints.postgresql.prepared_rows import build_insertion
from checkpoints.runs.plans import PlanSpec, StepSpec, spec_of
from checkpoints.store import start_and_fork
from checkpoints.values import json_pointer
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.characters import one_line
from checkpoints.values.digests import ListDigest

from . import asking, plans
from .reach import note_presence
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


@dataclass(frozen=True)
class Sender:
    """The sender of posted gates, and the team that they are for."""

    by: Actor
    team: Group
    owner: User
    token: Token | None
    worker: str
    deferred: bool


class _New(NamedTuple):
    """A posted gate with its run and the run's first checkpoint, which are not written yet."""

    run: Run
    draft: RowDraft
    gate: NewGate


@dataclass
class _Posting:
    """One request, and what its gates read in common."""

    sender: Sender
    tools: Mapping[str, Tool]
    numbers: Iterator[int]  # of runs
    at: datetime  # the database's time
    list_format: type[ListDigest]  # the format of new runs' digests
    policies: dict[str, Policy] = field(default_factory=dict)
    plans: dict[bytes, Plan] = field(default_factory=dict)

    def prepare(self, posted: PostedGate) -> _New:
        """Make the rows of a gate. Raises InputRefused, PlanRefused and WorkInvalid."""
        if faults := plans.list_errors(_name_faults(posted)):
            raise WorkInvalid(faults)
        policy = self.policy(posted.policy)
        posted = replace(posted, card=self.shaped(posted, policy))
        try:
            run, state = self.run(posted)
            draft = start_and_fork.first_checkpoint(
                run, next(self.numbers), state, first_step=GATE, at=self.at, list_format=self.list_format
            )
        except ValueRefused as error:
            raise WorkInvalid.at(_sent_at(posted, error.pointer), error.reason) from error
        except InputRefused as error:
            if faults := asking.faults_of(posted.card):  # the errors point into what was sent
                raise WorkInvalid(faults) from error
            raise
        plan = spec_of(run.plan)
        step, state = plan.step(GATE), draft.snapshot().state
        card = asking.checked(
            _placed(posted), step=step, plan=plan, state=state, team=run.team, policy=policy, tools=self.tools
        )
        alike = likeness.attempt_digests(plan.agent, card.actions)
        first = pacing.RejectedBefore(1, None)
        row = draft.row
        gate = NewGate(run, row.id, row.digest, step, policy, card, "review", self.sender.owner.pk, alike, first)
        return _New(run, draft, gate)

    def policy(self, name: str) -> Policy:
        """Return the policy of that name. Raises WorkInvalid."""
        if name not in self.policies:
            try:
                self.policies[name] = Policy.objects.named(name, team=self.sender.team, exact=True)
            except NoSuchPolicy as error:
                raise WorkInvalid.at("/policy", str(error)) from error
        return self.policies[name]

    def shaped(self, posted: PostedGate, policy: Policy) -> Card:
        """Return the card with a schema for each action: for a registered tool its own, whatever was sent.

        Raises ToolNotRegistered and ToolMismatched.
        """
        named = [replace(action, tool=action.tool or action.id) for action in posted.card.actions]
        card = replace(posted.card, actions=named)
        known = asking.draw_card(card, team=self.sender.team, policy=policy, tools=self.tools).actions
        pairs = zip(posted.card.actions, known, strict=True)
        return replace(
            card, actions=[replace(action, schema=on.schema or infer_schema(action.arguments)) for action, on in pairs]
        )

    def run(self, posted: PostedGate) -> tuple[Run, dict[str, Any]]:
        """Return the run and its first state. Raises PlanRefused and InputRefused."""
        spec, digest = imply_plan(posted)
        plan = self.plans.get(digest) or plans.keep(spec)
        self.plans[digest] = plan
        known = plans.registered(plan.pk) or plans.declared(plan)
        values = {**posted.state, **{action.id: action.arguments for action in posted.card.actions}}
        run = Run(
            plan=plan, team=self.sender.team, title=one_line(posted.card.title, 200), thread=posted.thread,
            started_by=self.sender.owner, started_as=self.sender.by.id,
        )  # fmt: skip
        return run, fields.whole(validate_input(known.agent.State, values))


def post(posted: Sequence[PostedGate], sender: Sender, *, batch: bool = False) -> list[RemoteTurn]:
    """Start a run for each gate and open it, in one transaction.

    `batch`: faults are those of `/gates/<number>`. Raises PlanRefused, InputRefused, WorkInvalid and TooManyGates.
    """
    with transaction.atomic(savepoint=False):
        named = {action.tool or action.id for gate in posted for action in gate.card.actions}
        tools = Tool.objects.registered(named, team=sender.team)
        numbers, at, list_format = start_and_fork.new_numbers(len(posted))
        posting = _Posting(sender, tools, iter(numbers), at, list_format)
        with validate.counted():  # the checks of all its schemas together, however many gates it has
            made = _prepare_all(posting.prepare, posted, "/gates" if batch else "")
        try:
            gates = _within_pace([row.gate for row in made], "/gates" if batch else "/policy")
        except AskedTooOften as full:
            raise TooManyGates(full) from full
        return _write_all(made, [_with_authors(gate) for gate in gates], posting)


def come_again(runs: Sequence[int], sender: Sender) -> None:
    """Record that a program comes again under its key, and whether it goes away this time.

    Raises WorkNotAllowed where its token may ask only under another policy than was asked under.
    """
    with transaction.atomic():
        found = list(Run.objects.filter(pk__in=runs).select_related("plan"))
        for run in found:
            asking.check_run(sender.token, run)
        for run in found:
            note_presence(run)
        Client.objects.filter(run__in=runs).update(deferred=sender.deferred)


def _prepare_all(prepare: Callable[[PostedGate], _New], posted: Sequence[PostedGate], at: str) -> list[_New]:
    """Prepare all gates, or raise the faults of all; `at` is where the list of them is, "" for one gate alone."""
    made: list[_New] = []
    refused: list[InputRefused | WorkInvalid] = []
    faults: list[FieldError] = []
    for number, gate in enumerate(posted):
        try:
            made.append(prepare(gate))
        except (InputRefused, WorkInvalid) as error:
            if not at:
                raise
            refused.append(error)
            faults += [{**fault, "pointer": f"{at}/{number}{fault['pointer']}"} for fault in error.errors]
    if refused:
        raise type(refused[0])(faults) from refused[0]
    return made


def _within_pace(gates: Sequence[NewGate], at: str) -> list[NewGate]:
    """Return the gates with the earlier rejections of the same, where their policies let so many through now.

    Raises AskedTooOften, and WorkInvalid for more gates than the policy lets through at all.
    """
    agent, team = gates[0].run.plan.agent, gates[0].run.team_id
    for policy in {gate.policy.pk: gate.policy for gate in gates}.values():
        if policy.hourly is not None and policy.hourly < len(gates) and not pacing.lifted():
            raise WorkInvalid.at(
                at, f"the policy {policy.name} allows {policy.hourly} gates an hour; send fewer at once"
            )
        pacing.check_cap(policy, team=team, agent=agent, more=len(gates))
    rejected = pacing.rejected_alike(team, {digest for gate in gates for digest in gate.likeness})
    return [
        gate._replace(earlier=pacing.before(gate.policy, gate.run, GATE, gate.likeness))
        if rejected.intersection(gate.likeness)
        else gate
        for gate in gates
    ]


def _with_authors(new: NewGate) -> NewGate:
    """Return the gate with the authors of the thread that its program named; its run begins here and has none."""
    if not new.run.thread:
        return new
    return new._replace(authors=separation.authors(new.run, new.checkpoint, new.step.name, new.card))


def _write_all(prepared: Sequence[_New], gates: Sequence[NewGate], posting: _Posting) -> list[RemoteTurn]:
    """Write the runs and their gates, with all events, and return the turns: each waits for people."""
    sender, runs = posting.sender, [row.run for row in prepared]
    titles = [opening.heading(gate.card.title) or gate.step.title for gate in gates]
    rows = start_and_fork.waiting_rows(runs, [row.draft for row in prepared], [f"asks: {title}" for title in titles])
    name, token = one_line(sender.worker, 120), sender.token
    clients = [
        Client(run_id=run.pk, token=token, owner=sender.owner, name=name, deferred=sender.deferred) for run in runs
    ]
    drafted, of_gates = opening.drafted(gates, by=sender.by, at=posting.at)
    event_log.append_events([
        entry
        for gate, first in drafted
        for entry in (
            *start_and_fork.began(gate.run, sender.by),
            opening.opened(gate, first, by=sender.by),
            start_and_fork.waits(gate.run, sender.by),
        )
    ], extras=[*rows, *build_insertion(clients), *of_gates])  # fmt: skip
    outbox.tell_all([gate for gate, _ in drafted], "gate.opened")
    for gate, first in drafted:
        automatic.approve(gate.pk, first)
    return [RemoteTurn(run=gate.run, token=gate.run.token, seq=gate.run.seq, gate=gate) for gate, _ in drafted]


def _placed(posted: PostedGate) -> Card:
    """Return the card with pointers to its actions' arguments in the state, and the effects that perform them."""
    actions = [
        replace(action, effect="" if posted.ask_only else action.id, pointer=f"/{action.id}", arguments=None)
        for action in posted.card.actions
    ]
    return replace(posted.card, actions=actions)


def _sent_at(posted: PostedGate, pointer: str) -> str:
    """Return the place in what was sent of a place in the state, where each action's arguments have its id."""
    name, slash, inside = pointer[1:].partition("/")
    numbers = {action.id: number for number, action in enumerate(posted.card.actions)}
    return f"/actions/{numbers[name]}/arguments{slash}{inside}" if name in numbers else f"/state{pointer}"


def _name_faults(posted: PostedGate) -> Iterator[plans.Fault]:
    """List the names that cannot be fields of the state, and those that two things would share."""
    ids = [action.id for action in posted.card.actions]
    reserved = {FEEDBACK, GATE, *(name + RESULT for name in ids)}
    spelling = "must have only letters, digits and _, and begin with a letter"
    if not ids:
        yield "/actions", "a gate needs at least one action"
    for number, name in enumerate(ids):
        at = f"/actions/{number}/id"
        if name in ids[:number]:
            yield at, f"{name} is used twice"
        if name in reserved:
            yield at, f"{name} is a reserved name; choose another"
        if not plans.FIELD.fullmatch(name):
            yield at, spelling
    for name in posted.state:
        at = json_pointer.join("/state", name)
        if name in reserved or name in ids:
            yield at, "is the name of an action or a reserved name; choose another"
        if not plans.FIELD.fullmatch(name):
            yield at, spelling
