"""The card that a gate shows, with the actions that it asks about.

An agent's gate step returns a card that may be sparse; `completed` fills in what the plan and the saved state know
better (arguments, schema, undo, what is allowed), so that what is shown is what is saved.

It also reads cards from the bytes in which they are saved. A card never changes, so a process reads the same bytes
once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from threading import RLock
from typing import Any, NotRequired, TypedDict, TypeVar

from cachetools import LRUCache, cached
from django.utils.functional import cached_property

from approvals.errors import CardRefused
from approvals.schema import redact, validate
from approvals.schema.redact import Source
from approvals.schema.walk import Schema, move_schema
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values import json_pointer
from checkpoints.values.canonical_json import decode_canonical

from . import action, amount, chart, precondition, quote
from .action import Action
from .amount import Delay
from .chart import Chart
from .precondition import Precondition
from .quote import Quote
from .unreadable import UnreadablePart, find_unreadable

RISKS = ("low", "medium", "high", "critical")
# Identifiers are read and compared by people: plain ASCII leaves no room for look-alikes and bidi controls.
IDENTIFIER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
TOOLS = "x-tools"  # in the schema of a state: those of registered tools
Shown = TypeVar("Shown", "Card", Action, Quote, Chart, Precondition)


class AnswerChoice(TypedDict, total=False):
    """One answer that a gate offers."""

    id: str
    label: str
    needs_value: bool
    schema: dict[str, Any]
    grants: bool  # the answer lets the gate's effects run


class Question(TypedDict):
    """The question of a gate: how to go on after a failure, or which of several things to do."""

    text: str
    choices: list[AnswerChoice]
    effect: NotRequired[str]  # the key of the effect that is asked about
    runs: NotRequired[list[int]]  # the runs that are asked about: what another version of the step started
    rejects: NotRequired[bool]  # may be rejected: the run stops or is sent back. Set by `completed`


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card: everything that a gate presents for a decision."""

    title: str
    summary: str = ""  # the agent's own words
    for_whom: str = ""
    amount: str = ""  # display text
    cost_of_delay: Delay | None = None  # what it costs that nobody decides
    resource: str = ""  # what it is about, "order 20418": other gates and effects about the same are named beside it
    risk: str = "medium"  # low, medium, high, critical
    reasons: Sequence[str] = ()  # why the risk is what it is
    actions: Sequence[Action] = ()
    quotes: Sequence[Quote] = ()  # what people said, beside the agent's account of it
    charts: Sequence[Chart] = ()
    preconditions: Sequence[Precondition] = ()  # what must still be so when an effect is done
    allows: Sequence[str] = ()  # effect steps that an approval lets run
    back_to: Sequence[str] = ()  # steps that the run can be sent back to
    on_reject: str = ""  # the step that a rejection is sent back to unless the reviewer chooses; empty: stop
    on_expire: str = ""
    question: Question | None = None
    reopened: dict[str, Any] | None = None  # {"gate": id, "changes": [rows]} where an earlier approval did not hold
    external: bool = field(default=False, compare=False)  # an external program asks; from its plan's row, not stored

    def __post_init__(self) -> None:
        for name in ("reasons", "actions", "quotes", "charts", "preconditions", "allows", "back_to"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @cached_property
    def unreadable(self) -> dict[str, list[UnreadablePart]]:
        """Return by action id what would run and cannot be read on the page."""
        return find_unreadable(self.actions)

    @property
    def source(self) -> Source:
        return Source.of_agent(external=self.external)

    @property
    def rejects(self) -> bool:
        """Tell whether what is asked may be rejected; the question of a recovery gate has to be answered."""
        return self.question is None or self.question.get("rejects", False)

    def label_of(self, answer: Mapping[str, Any] | None) -> str:
        """Return the label of an answer to the card's question, {"choice", "value"}; "" where there is none."""
        if not self.question or not answer:
            return ""
        labels = {choice["id"]: choice.get("label", choice["id"]) for choice in self.question["choices"]}
        return str(labels.get(answer["choice"], answer["choice"]))

    def action(self, action_id: str) -> Action | None:
        """Find the action of that id."""
        return next((action for action in self.actions if action.id == action_id), None)

    def with_arguments(self, arguments: Mapping[str, Any]) -> Card:
        """Return the same card with other arguments, by action id."""
        return replace(self, actions=[replace(a, arguments=arguments.get(a.id, a.arguments)) for a in self.actions])

    def unfilled(self, asked: Card) -> list[tuple[Action, str]]:
        """List (action, pointer) of all that must be filled in before approval; `asked` is the agent's card."""
        before = {action.id: action for action in asked.actions}
        return [(each, place) for each in self.actions if each.id in before for place in each.unfilled(before[each.id])]

    def untaken(self, asked: Card) -> list[Action]:
        """List the actions that would run as they were `asked`, though they may only be edited or answered instead."""
        before = {action.id: action for action in asked.actions}
        return [each for each in self.actions if each.id in before and not each.may_run(before[each.id])]

    @property
    def registered_risk(self) -> str:
        """Return the highest risk that people gave the actions' tools; "" where one is not registered."""
        given = [action.registered.risk if action.registered else "" for action in self.actions]
        return "" if "" in given else max(given, key=RISKS.index, default="")

    @property
    def settled(self) -> bool:
        """Tell whether somebody refused one of the actions, or answered in its place."""
        return any(action.settled for action in self.actions)

    def to_json(self) -> dict[str, Any]:
        """Return what is stored of it; `cost_of_delay` only where it is stated."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "external"}
        lists = {name: list(plain[name]) for name in ("reasons", "allows", "back_to")}
        lists_of = ("actions", "quotes", "charts", "preconditions")
        nested = {name: [each.to_json() for each in plain[name]] for name in lists_of}
        if self.cost_of_delay is None:
            del plain["cost_of_delay"]
        return {**plain, **lists, **nested}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, external: bool = False) -> Card:
        """Read what `to_json` wrote; other names are ignored. `external`: its plan is an external program's."""
        known = {f.name: data[f.name] for f in fields(cls) if f.name in data}
        nested = {
            "actions": [Action.from_json(action, external=external) for action in data.get("actions", [])],
            "quotes": [Quote(**quote) for quote in data.get("quotes", [])],
            "charts": [Chart(**chart) for chart in data.get("charts", [])],
            "preconditions": [Precondition.from_json(each) for each in data.get("preconditions", [])],
            "external": external,
        }
        return cls(**{**known, **nested})


def completed(card: Card, *, step: StepSpec, plan: PlanSpec, state: Mapping[str, Any], recovery: bool = False) -> Card:
    """Complete `card` with what the plan and the state know better than the agent's card.

    `recovery`: it asks about a step that failed. Raises CardRefused where the card cannot be asked about.
    """
    # A recovery card allows only the effects that it names itself, not those of a gate's step.
    allows = tuple(card.allows) or (() if recovery else tuple(step.allows))
    earlier = () if recovery else tuple(_steps_before(plan, step.name))
    asked = [action.completed(each, step=step, plan=plan, state=state, recovery=recovery) for each in card.actions]
    if card.question:  # beside a question an action takes no verdict of its own
        asked = [replace(each, verdicts=()) for each in asked]
    whole = replace(
        card,
        actions=asked,
        allows=allows,
        back_to=tuple(card.back_to) or earlier,
        on_reject=card.on_reject or ("" if recovery else step.on_reject),
        on_expire=card.on_expire or step.on_expire,
        question=card.question if recovery or not card.question else {**card.question, "rejects": True},
        external=plan.external,
    )
    veil = state_veil(plan)
    whole = scrubbed(whole, veil.words(state)) if veil else whole
    faults = [*_identifier_faults(whole), *_allow_faults(whole, step), *_question_faults(whole)]
    faults += _schema_faults(whole, recovery=recovery)
    faults += action.faults_of(whole.actions, step=step, plan=plan, recovery=recovery)
    faults += [*quote.faults_of(whole.quotes, state), *chart.faults_of(whole.charts, state)]
    faults += _secret_faults(whole, redact.veil_marks(plan.state_schema))
    faults += _precondition_faults(whole, step, plan)
    known = {s.name for s in plan.steps}
    sent_to = {*whole.back_to, whole.on_reject, whole.on_expire} - {""}
    faults += [f"the plan has no step {name!r} to go to" for name in sorted(sent_to - known)]
    final = {s.name for s in plan.steps if s.irreversible}
    faults += [
        f"{name!r} cannot be undone, so no rejection goes back to it"
        for name in sorted({*whole.back_to, whole.on_reject} & final)
    ]
    faults += filter(None, [amount.fault_of_delay(whole.cost_of_delay)])
    if whole.risk not in RISKS:
        faults.append(f"risk {whole.risk!r} is none of {', '.join(RISKS)}")
    if faults:
        raise CardRefused(f"{step.name}: {'; '.join(faults)}")
    return whole


def state_veil(plan: PlanSpec, card: Card | None = None) -> redact.Redaction:
    """Return what of a state is hidden from whoever decides, where `card` asks about it.

    An external program's plan hides nothing; what people registered as secret of a tool is hidden in its arguments.
    """
    source = Source.of_agent(external=plan.external)
    if source is Source.PROGRAM and card is not None:
        return redact.veil(with_tools({}, card.actions), Source.TOOL)
    return redact.veil(plan.state_schema, source)


def with_tools(schema: Schema, actions: Iterable[Action]) -> Schema:
    """Return a state's schema with those of the registered tools whose arguments are in the state, at their places."""
    placed = [(each.pointer, each.schema) for each in actions if each.registered and each.pointer and each.redaction]
    if not placed:
        return schema
    parts = [_at(pointer, {"$ref": f"#/{TOOLS}/{at}"}) for at, (pointer, _) in enumerate(placed)]
    tools = {str(at): move_schema(known, f"/{TOOLS}/{at}") for at, (_, known) in enumerate(placed)}
    return {**schema, "allOf": [*schema.get("allOf", ()), *parts], TOOLS: tools}


def _at(pointer: str, part: Schema) -> Schema:
    """Return a schema that says this of the value at a pointer."""
    for token in reversed(json_pointer.split_pointer(pointer)):
        part = {"properties": {token: part}}
    return part


def scrubbed(card: Card, secrets: Sequence[str]) -> Card:
    """Return the card without these secrets in its words; in arguments from the state the schema hides them."""
    if not secrets:
        return card

    def plain(shown: Shown, *names: str) -> Shown:
        return replace(shown, **{name: redact.scrubbed(getattr(shown, name), secrets) for name in names})

    words = plain(card, "title", "summary", "for_whom", "amount", "resource", "reasons", "question")
    return replace(
        words,
        actions=[
            replace(
                plain(each, "title", "undo", *_loose_arguments(each)),
                draws=[replace(drawing, was=redact.scrubbed(drawing.was, secrets)) for drawing in each.draws],
            )
            for each in card.actions
        ],
        quotes=[plain(each, "label", "role") for each in card.quotes],
        charts=[plain(each, "title", "figures") for each in card.charts],
        preconditions=[plain(each, "label") for each in card.preconditions],
    )


def _loose_arguments(action: Action) -> list[str]:
    """Name the field "arguments" where they are not from the state and no schema hides the secrets in them."""
    return [] if action.pointer or action.redaction else ["arguments"]


def _secret_faults(card: Card, veil: redact.Redaction) -> list[str]:
    drawn = [*(each.pointer for each in card.quotes), *(each.pointer for each in card.charts)]
    hidden = [place for place in drawn if veil and veil.at(place).hides]
    return [f"what is at {place} in the state is secret: it cannot be quoted or drawn" for place in hidden]


def _steps_before(plan: PlanSpec, name: str) -> list[str]:
    """List the steps to which a rejection may send the run back: no irreversible ones, which only a rewind confirms."""
    names = [s.name for s in plan.steps]
    before = plan.steps[: names.index(name)] if name in names else ()
    return [s.name for s in before if not s.irreversible]


def _identifier_faults(card: Card) -> list[str]:
    ids = [action.id for action in card.actions]
    conditions = [each.id for each in card.preconditions]
    named = [*ids, *(action.tool for action in card.actions), *conditions]
    faults = [f"{name!r} is not an identifier of plain letters, digits, . : _ -" for name in named if not _plain(name)]
    faults += [f"action {name!r} is there twice" for name in _twice(ids)]
    return faults + [f"precondition {name!r} is there twice" for name in _twice(conditions)]


def _twice(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _plain(name: str) -> bool:
    return bool(IDENTIFIER.fullmatch(name))


def _allow_faults(card: Card, step: StepSpec) -> list[str]:
    beyond = sorted(set(card.allows) - set(step.allows)) if step.kind == "gate" else []
    faults = [f"the plan does not let this gate allow {name!r}" for name in beyond]
    for each in card.actions:
        if each.effect and each.effect not in card.allows:
            faults.append(f"action {each.id!r} asks for {each.effect!r}, which the gate does not allow")
    return faults


def _precondition_faults(card: Card, step: StepSpec, plan: PlanSpec) -> list[str]:
    """List the faults of preconditions; a recovery card repeats a gate's, so it may use any gate's observations."""
    gates = [step] if step.kind == "gate" else plan.steps
    observable = [name for gate in gates for name in gate.observes]
    return precondition.faults_of(card.preconditions, observable=observable, allows=card.allows)


def _question_faults(card: Card) -> list[str]:
    if card.question is None:
        return []
    ids = [choice.get("id", "") for choice in card.question["choices"]]
    if not ids or "" in ids or len(set(ids)) < len(ids):
        return ["a question needs choices, each with an id of its own"]
    return [f"{each!r} is not an identifier of plain letters, digits, . : _ -" for each in ids if not _plain(each)]


def _schema_faults(card: Card, *, recovery: bool) -> list[str]:
    """List what is wrong with the schemas of answers; the choices of a recovery gate are not checked."""
    answering = [each for each in card.actions if each.response and each.takes(action.RESPOND)]
    asked = [(f"the response of action {each.id!r}", each.response) for each in answering]
    choices = card.question["choices"] if card.question and not recovery else []
    asked += [(f"the value of {each.get('id')!r}", each["schema"]) for each in choices if each.get("schema")]
    return [f"the schema of {whose} is unsound: {wrong}" for whose, part in asked if (wrong := validate.unusable(part))]


MARKS = (b'"writeOnly":true', b'"password"')  # as canonical JSON has them, see approvals.schema.walk.is_secret
READ = 2_000_000  # bytes of cards that a process caches; the decoded values take some ten times as much


def card_of(body: bytes, *, external: Callable[[], bool]) -> Card:
    """Return the card in a gate's or a proposal's canonical JSON. Many readers share it: nobody may change its values.

    `external` tells whether its plan is an external program's, by the plan's row. It is asked only where something in
    the card may be marked as secret, so that most cards are read without that row.
    What a reader may see of it is no part of it, and is decided for each request.
    """
    return _read(body, any(mark in body for mark in MARKS) and external())[0]


@cached(LRUCache(READ, itemgetter(1)), lock=RLock())
def _read(body: bytes, external: bool) -> tuple[Card, int]:
    return Card.from_json(decode_canonical(body), external=external), len(body)
