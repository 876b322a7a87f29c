"""The actions of a card: what each asks for, which verdicts it takes, and what people settled about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from django.utils.functional import cached_property

from approvals.errors import CardRefused
from approvals.schema import redact
from approvals.schema.redact import Source
from approvals.schema.walk import Schema, is_list, schema_at, unveil_schema
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values import json_pointer
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.patch import are_same

from . import drawing
from .drawing import Drawing

APPROVE, EDIT, REJECT, RESPOND, LATER = "approve", "edit", "reject", "respond", "later"
VERDICTS = (APPROVE, EDIT, REJECT, RESPOND, LATER)
SETTLES = (REJECT, RESPOND, LATER)  # the action does not run
MOST_PINNED = 100_000  # bytes of one action's pinned values


@dataclass(frozen=True, kw_only=True)
class SettledAction:
    """The refusal of an action, an answer in its place, or its postponement: the action does not run as it was shown.

    It is part of the proposal, so that whoever approves the proposal approves this too.
    """

    verdict: str  # of SETTLES
    by: str  # a person's name
    reason: str = ""  # of a rejection
    response: Any = None  # what the agent gets instead of the effect's result

    def same(self, other: SettledAction | None) -> bool:
        """Tell whether both settle the action alike, whoever did it."""
        return other is not None and replace(self, by="") == replace(other, by="")


@dataclass(frozen=True, kw_only=True)
class ToolVersion:
    """The version of a registered tool by which an action is drawn."""

    version: int
    risk: str  # of cards.RISKS, that people gave it


@dataclass(frozen=True, kw_only=True)
class Action:
    """One thing asked about: a tool's name with its arguments at a JSON Pointer in the state."""

    id: str
    title: str = ""
    tool: str = ""
    effect: str = ""  # the effect step that performs it; empty where none does
    pointer: str = ""  # where its arguments are in the state; empty where they are not in it
    schema: Mapping[str, Any] = field(default_factory=dict)
    arguments: Any = None
    edits: bool = True  # may be edited, where the gate allows it
    pinned: Sequence[str] = ()  # pointers within the arguments that are shown first and never folded
    missing: Sequence[str] = ()  # pointers within the arguments that a reviewer has to fill in or change to approve it
    irreversible: bool = False
    undo: str = ""  # the step or tool that undoes it
    verdicts: Sequence[str] = ()  # of VERDICTS, those that it takes; empty: approve, edit and reject
    response: Mapping[str, Any] = field(default_factory=dict)  # the JSON Schema of a response; empty: a text
    draws: Sequence[Drawing] = ()  # how people see the arguments, beside their exact values
    settled: SettledAction | None = None
    registered: ToolVersion | None = None  # set by the runtime, never by the program that asks
    external: bool = field(default=False, compare=False)  # an external program asks; from its plan's row, not stored

    def __post_init__(self) -> None:
        object.__setattr__(self, "pinned", tuple(self.pinned))
        object.__setattr__(self, "missing", tuple(self.missing))
        object.__setattr__(self, "verdicts", tuple(self.verdicts))
        object.__setattr__(self, "draws", tuple(self.draws))

    @cached_property
    def derived(self) -> dict[str, Any]:
        """Return the place where others keep what follows from the action alone, once for all readers."""
        return {}

    @property
    def source(self) -> Source:
        return Source.TOOL if self.registered else Source.of_agent(external=self.external)

    @cached_property
    def shown_schema(self) -> Schema:
        """Return the schema by which its arguments are drawn for whoever decides."""
        return redact.masking(self.schema, self.source)

    @cached_property
    def redaction(self) -> redact.Redaction:
        """Return what of its arguments is hidden from whoever decides."""
        return redact.veil(self.schema, self.source)

    @cached_property
    def masked(self) -> Any:
        return self.redaction.masked(self.arguments)

    @cached_property
    def masked_in_messages(self) -> Any:
        """Return its arguments for places where nobody decides, with all masked that any schema marks as secret."""
        return redact.veil_marks(self.schema).masked(self.arguments)

    @property
    def response_redaction(self) -> redact.Redaction:
        return redact.veil(self.response, Source.of_agent(external=self.external))

    @property
    def masked_settled(self) -> SettledAction | None:
        """Return how it is settled, with what is secret in the response masked."""
        return self.settled and replace(self.settled, response=self.response_redaction.masked(self.settled.response))

    @property
    def editable(self) -> bool:
        """Tell whether there are arguments that people may edit."""
        return self.edits and self.arguments is not None

    @property
    def settled_as(self) -> str:
        """Return the verdict that keeps it from running as shown, of SETTLES; "" where it runs."""
        return self.settled.verdict if self.settled else ""

    def may_run(self, asked: Action) -> bool:
        """Tell whether it may run as it is now: as it was `asked` only if it takes an approval."""
        if self.settled is not None or not self.verdicts or self.takes(APPROVE):
            return True
        return self.takes(EDIT) and not are_same(self.arguments, asked.arguments)

    @property
    def asks_only(self) -> bool:
        """Tell whether it proposes nothing, but asks for what is missing: people cannot approve, reject or skip it."""
        return bool(self.missing) and self.takes(EDIT) and {*self.verdicts} <= {EDIT, LATER}

    def takes(self, verdict: str) -> bool:
        return verdict in self.verdicts

    def in_own_words(self, *, external: bool) -> bool:
        """Tell whether an external program wrote its titles and pins: no registered tool gives them."""
        return external and self.registered is None

    def unfilled(self, asked: Action) -> list[str]:
        """List the missing places that are empty or as the agent `asked` them; none where the action does not run."""
        if self.settled is not None:
            return []
        values = [
            (place, json_pointer.get(self.arguments, place), json_pointer.get(asked.arguments, place))
            for place in self.missing
        ]
        return [place for place, now, was in values if is_empty(now) or are_same(now, was)]

    def to_json(self) -> dict[str, Any]:
        """Return what is stored of it; `settled`, `registered`, `missing` and `draws` only where set."""
        apart = ("settled", "registered", "missing", "draws", "external")
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in apart}
        lists: dict[str, Any] = {"pinned": list(self.pinned), "verdicts": list(self.verdicts)}
        lists |= {"missing": list(self.missing)} if self.missing else {}
        lists |= {"draws": [each.to_json() for each in self.draws]} if self.draws else {}
        told = {name: asdict(each) for name in ("settled", "registered") if (each := getattr(self, name))}
        return {**plain, "schema": dict(self.schema), "response": dict(self.response), **lists, **told}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, external: bool = False) -> Action:
        """Read the action that `to_json` wrote. `external`: its plan is an external program's."""
        known = {f.name: data[f.name] for f in fields(cls) if f.name in data}
        settled, registered = known.get("settled"), known.get("registered")
        told = {
            "draws": [Drawing(**each) for each in known.get("draws", ())],
            "settled": SettledAction(**settled) if settled else None,
            "registered": ToolVersion(**registered) if registered else None,
        }
        return cls(**{**known, **told, "external": external})


def is_empty(value: Any) -> bool:
    """Tell whether nothing was filled in: None, blank text, or an empty list or object."""
    return value is None or (isinstance(value, str) and not value.strip()) or value in ([], {})


def editable(step: StepSpec) -> tuple[str, ...]:
    """Return pointers to the places of the state that a gate step lets people edit."""
    return tuple(entry if entry.startswith("/") else json_pointer.join("", entry) for entry in step.edits)


def completed(
    action: Action, *, step: StepSpec, plan: PlanSpec, state: Mapping[str, Any], recovery: bool = False
) -> Action:
    """Complete `action` with what the plan and the state know better than the agent's card. Raises CardRefused.

    Where the plan hides any argument, its schema replaces the card's, which would show the secret.
    """
    effect = next((s for s in plan.steps if s.name == action.effect), None)
    filled = replace(
        action,
        title=action.title or action.tool or action.id,
        tool=action.tool or action.effect or action.id,
        irreversible=action.irreversible or bool(effect and effect.irreversible),
        undo=action.undo or (effect.undo if effect else "") or "",
        response=_response_schema(action, effect, plan),
        registered=None,
        external=plan.external,
    )
    if not action.pointer:
        # The runtime writes a recovery card itself and takes the schema from the plan, so it is used as it is.
        schema = action.schema if recovery else unveil_schema(action.schema, {})
        return _with_verdicts(replace(filled, edits=False, schema=schema), step)
    if not json_pointer.has_value(state, action.pointer):
        raise CardRefused(f"{step.name}: action {action.id!r}: there is nothing at {action.pointer} in the state")
    offered = action.edits and (not action.verdicts or EDIT in action.verdicts)
    known = _schema_of(plan, action.pointer)
    placed = replace(
        filled,
        arguments=json_pointer.find_value(state, action.pointer),
        schema=unveil_schema(action.schema, known) if action.schema and not redact.veil_marks(known) else known,
        edits=offered and any(json_pointer.overlaps(place, action.pointer) for place in editable(step)),
    )
    return _with_verdicts(placed, step)


def faults_of(actions: Sequence[Action], *, step: StepSpec, plan: PlanSpec, recovery: bool) -> list[str]:
    """List the faults of the actions' verdicts, missing values and pins, and of the effects that perform them."""
    faults: list[str] = []
    for action in actions:
        faults += [*_verdict_faults(action, step, plan), *_missing_faults(action, step), *pinned_faults(action)]
        wrong = drawing.faults_of(action.draws, action.arguments)
        faults += [f"action {action.id!r}: what it draws, {member}: {fault}" for _, member, fault in wrong]
    performed = [] if recovery else [action.effect for action in actions if action.effect]
    by_name = {each.name: each for each in plan.steps}
    for name in sorted({name for name in performed if performed.count(name) > 1}):
        if name in by_name and not by_name[name].action:
            faults.append(
                f"several actions are performed by {name!r}; say which one it is about to perform, "
                f"with @effect(action=…) naming the field of the state that holds the action's id"
            )
    return faults


def pinned_faults(action: Action) -> Iterator[str]:
    """Yield a fault where the pinned values are too long: they are never folded, so a page would carry all of them."""
    long = sum(len(encode_canonical(json_pointer.get(action.arguments, place))) for place in action.pinned)
    if long > MOST_PINNED:
        yield f"action {action.id!r} pins more than {MOST_PINNED:,} bytes, which nobody reads; pin less, or quote it"


def _missing_faults(action: Action, step: StepSpec) -> Iterator[str]:
    """Yield a fault for each missing value that nobody could fill in: the gate could never be approved."""
    for place in action.missing:
        where = f"action {action.id!r} lacks {place}"
        if not (json_pointer.has_value(action.arguments, place) or schema_at(action.schema, place)):
            yield f"{where}, which is no place in its arguments"
        elif not (
            action.edits and any(json_pointer.covers_place(each, action.pointer + place) for each in editable(step))
        ):
            yield f"{where}, but the gate lets nobody edit it"


def _schema_of(plan: PlanSpec, pointer: str) -> dict[str, Any]:
    """Return the plan's schema of a place; all of it is secret where the schema does not say which part is."""
    known = schema_at(plan.state_schema, pointer)
    hidden = redact.veil_marks(plan.state_schema).at(pointer).hides and not redact.veil_marks(known).hides
    return {"writeOnly": True} if hidden else known


def _response_schema(action: Action, effect: StepSpec | None, plan: PlanSpec) -> dict[str, Any]:
    """Return the schema of a response: the card's, or the effect field's (its items') where that hides secrets."""
    if effect is None or not effect.responds:
        return dict(action.response)
    place = json_pointer.join("", effect.responds)
    place = json_pointer.join(place, "0") if is_list(plan.state_schema, place) else place
    known = _schema_of(plan, place)
    return dict(action.response) if action.response and not redact.veil_marks(known) else known


def _with_verdicts(action: Action, step: StepSpec) -> Action:
    if action.verdicts:
        return action
    return replace(action, verdicts=[APPROVE, *[EDIT] * action.edits, REJECT] if step.kind == "gate" else [])


def _verdict_faults(action: Action, step: StepSpec, plan: PlanSpec) -> list[str]:
    unknown = [each for each in action.verdicts if each not in VERDICTS]
    faults = [f"action {action.id!r} takes no verdict {each!r}; there is {', '.join(VERDICTS)}" for each in unknown]
    if action.verdicts and not {APPROVE, EDIT, RESPOND} & set(action.verdicts) and action.settled is None:
        faults.append(
            f"action {action.id!r} takes none of {APPROVE!r}, {EDIT!r} and {RESPOND!r}; "
            "what can only be refused is not asked about"
        )
    if action.takes(EDIT) and not action.edits:
        faults.append(f"action {action.id!r} takes {EDIT!r}, but the gate lets nobody edit what is at its pointer")
    effect = next((each for each in plan.steps if each.name == action.effect), None)
    heard = bool(step.feedback or (effect and effect.responds))
    if action.takes(RESPOND) and not heard:
        faults.append(
            f"action {action.id!r} takes {RESPOND!r}, but nothing takes the response: give the effect a field by "
            "`responds`, or the state a list `feedback`"
        )
    return faults
