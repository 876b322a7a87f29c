"""The actions of a gate as forms: pinned values first, then typed fields, then the reader's edit as a diff."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from approvals import pointers, schema_form, schemas
from approvals.cards import Action, Card
from approvals.errors import Problem
from checkpoints import patch

from . import unseen

EDITABLE = 60_000  # characters: a longer value is shown, not put into an input that would have to carry it back


MISSING: Any = object()


@dataclass(frozen=True, kw_only=True)
class Pinned:
    """A dangerous value: never folded, never clamped."""

    label: str
    value: Any
    name: str = ""  # of the input that edits it
    before: Any = None
    changed: str = ""  # by whom: "you", "others", or nobody
    editable: bool = False
    unit: str = ""  # the currency beside an amount


@dataclass(frozen=True, kw_only=True)
class Input:
    """One field of the form, with what it was before the reader touched it."""

    field: schema_form.Field
    was: str  # the text it was rendered from
    at: str = ""  # JSON Pointer within the saved state
    too_long: bool = False
    value: Any = None  # as it is in the arguments, where it is only shown

    @property
    def id(self) -> str:
        return "f-" + "".join(char if char.isalnum() else "-" for char in self.field.name)

    @property
    def edited(self) -> bool:
        return self.field.value != self.was

    @property
    def fixed(self) -> bool:
        """Whether there is nothing to choose: shown as it is, and not posted."""
        return len(self.field.choices) == 1 and not self.field.error

    @property
    def wide(self) -> bool:
        return self.field.kind in ("long", "json")

    @property
    def nested(self) -> bool:
        return isinstance(self.value, (dict, list)) and bool(self.value)

    @property
    def unseen(self) -> bool:
        return any(unseen.badge_count(self.was[:EDITABLE]))

    @property
    def hidden_characters(self) -> bool:
        return not self.field.exact


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One action: what will be called, with what."""

    number: int
    action: Action
    pinned: Sequence[Pinned] = ()
    inputs: Sequence[Input] = ()
    values: Sequence[Input] = ()  # the same fields of an action that cannot be edited, less what is pinned
    shown: Any = None  # its arguments, where no schema names their fields
    changes: Sequence[Mapping[str, Any]] = ()  # rows of the reader's own edit
    errors: Sequence[str] = ()  # that belong to no field
    value_text: str = ""  # the arguments as JSON, for "put this value in its place"


@dataclass(frozen=True, kw_only=True)
class Typed:
    """What somebody typed and has not managed to send. `arguments` is by action id, where it could be read."""

    posted: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    errors: Sequence[Problem] = ()
    patch: Sequence[Mapping[str, Any]] = ()  # on the gate's state, where what was typed is a valid edit


def prefix(action: Action) -> str:
    """What the names of an action's inputs begin with."""
    return f"args.{action.id}"


def editable(action: Action) -> bool:
    return action.edits and action.arguments is not None


def sheets(
    card: Card, *, typed: Typed | None = None, before: Card | None = None, read_only: bool = False
) -> list[Sheet]:
    """One sheet an action. `typed` keeps what was typed; `before` is the card that the agent proposed at first."""
    typed = typed or Typed()
    return [
        sheet(action, number=number, typed=typed, before=before, read_only=read_only)
        for number, action in enumerate(card.actions, 1)
    ]


def sheet(action: Action, *, number: int, typed: Typed, before: Card | None, read_only: bool) -> Sheet:
    mine = typed.arguments.get(action.id, action.arguments)
    errors = {e["pointer"]: e["message"] for e in typed.errors if e["action"] == action.id}
    inputs = [] if read_only or not editable(action) else inputs_of(action, typed=typed, errors=errors)
    placed = {place for place in errors for each in inputs if pointers.covers(each.field.pointer, place)}
    values = [] if inputs else values_of(action)
    proposed = before.action(action.id) if before else None
    return Sheet(
        number=number,
        action=action,
        pinned=pinned_of(action, mine=mine, before=proposed, inputs=inputs, values=values),
        inputs=inputs,
        values=[each for each in values if not each.field.pinned],
        shown=None if inputs or values else without(action.arguments, action.pinned),
        changes=patch.changes(action.arguments, mine) if mine != action.arguments else (),
        errors=[message for place, message in errors.items() if place not in placed],
        value_text=json_of(action) if inputs else "",
    )


def json_of(action: Action) -> str:
    """The arguments as JSON, for a form; nothing where that would be too long to carry back."""
    text = schema_form.fields({}, action.arguments)[0].value
    return text if len(text) <= EDITABLE else ""


def inputs_of(action: Action, *, typed: Typed, errors: Mapping[str, str]) -> list[Input]:
    names = prefix(action)
    offered = schema_form.fields(
        action.schema, action.arguments, prefix=names, pinned=action.pinned, errors=errors, posted=typed.posted
    )
    was = {each.name: each.value for each in schema_form.fields(action.schema, action.arguments, prefix=names)}
    return [Input(field=each, was=was[each.name], too_long=len(was[each.name]) > EDITABLE) for each in offered]


def values_of(action: Action) -> list[Input]:
    """The fields that the schema names, to be read only; none where it names no fields."""
    named = schema_form.fields(action.schema, action.arguments, prefix=prefix(action), pinned=action.pinned)
    return [
        Input(
            field=each,
            was=each.value,
            at=action.pointer + each.pointer if action.pointer else "",
            value=at(action.arguments, each.pointer),
        )
        for each in named
        if each.pointer and at(action.arguments, each.pointer) is not MISSING
    ]


def pinned_of(
    action: Action, *, mine: Any, before: Action | None, inputs: Sequence[Input], values: Sequence[Input] = ()
) -> list[Pinned]:
    offered = {each.field.pointer for each in inputs if not each.fixed}
    known = [*inputs, *values]
    labels = {each.field.pointer: each.field.label for each in known}
    money = {each.field.pointer for each in known if each.field.kind == "decimal"}
    found = []
    for place in action.pinned:
        stands = at(action.arguments, place)
        value, proposed = at(mine, place), at(before.arguments, place) if before else stands
        if value is MISSING and stands is MISSING:
            continue
        changed = "you" if value != stands else "others" if stands != proposed else ""
        label = labels.get(place) or " ".join(pointers.tokens(place)).replace("_", " ") or "all of it"
        old = stands if changed == "you" else proposed
        found.append(
            Pinned(
                label=label, value=shown(value), name=prefix(action) + place, before=shown(old), changed=changed,
                editable=place in offered,
                unit=unit_of(action.arguments, place) if place in money else "",
            )
        )  # fmt: skip
    return found


def unit_of(arguments: Any, place: str) -> str:
    """The currency code that stands beside an amount as its sibling `currency`; "" where there is none."""
    beside = at(arguments, place.rpartition("/")[0] + "/currency")
    return beside if isinstance(beside, str) and re.fullmatch("[A-Z]{3}", beside) else ""


def at(value: Any, place: str) -> Any:
    """The value at a pointer, or MISSING."""
    return pointers.get(value, place) if pointers.has(value, place) else MISSING


def shown(value: Any) -> Any:
    return "(not there)" if value is MISSING else value


def without(arguments: Any, places: Sequence[str]) -> Any:
    """The arguments less what is already shown as pinned."""
    if not isinstance(arguments, dict):
        return None if "" in places else arguments
    tops = {pointers.tokens(place)[0] for place in places if len(pointers.tokens(place)) == 1}
    return {name: value for name, value in arguments.items() if name not in tops}


def changes_between(old: Card, new: Card) -> list[dict[str, Any]]:
    """What differs between two versions of a proposal, as rows for a diff."""
    rows: list[dict[str, Any]] = []
    for action in new.actions:
        earlier = old.action(action.id)
        if earlier is None or patch.same(earlier.arguments, action.arguments):
            continue
        several = len(new.actions) > 1
        for row in patch.changes(earlier.arguments, action.arguments):
            rows.append({**row, "pointer": (f"/{action.id}" if several else "") + row["pointer"]})
    return rows


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer that a gate offers, with the form of the value it needs."""

    id: str
    label: str
    grants: bool = False  # it lets the gate's effects run
    inputs: Sequence[Input] = ()
    errors: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Override:
    """One action's arguments as JSON, to be put in its place."""

    sheet: Sheet
    text: str

    @property
    def number(self) -> int:
        return self.sheet.number

    @property
    def action(self) -> Action:
        return self.sheet.action


def answer_prefix(choice_id: str) -> str:
    return f"value.{choice_id}"


def blank(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
    """What a form for a value that nobody has written yet starts from: defaults, and objects to fill in."""
    part = schemas.resolved(schema, root or schema)
    if "default" in schema or "properties" not in part or depth > schema_form.NESTING:
        return schema.get("default", {} if part.get("type") == "object" else None)
    inner = {name: blank(each, root or schema, depth + 1) for name, each in part["properties"].items()}
    return {name: value for name, value in inner.items() if value is not None or "default" in part["properties"][name]}


def answers(card: Card, *, typed: Typed) -> list[Answer]:
    """The choices of a gate's question."""
    question = card.question
    if question is None:
        return []
    found = []
    for choice in question["choices"]:
        schema, names = choice.get("schema") or {}, answer_prefix(choice["id"])
        mine = {e["pointer"].removeprefix("/value"): e["message"] for e in typed.errors if not e["action"]}
        errors = mine if typed.posted.get("answer") == choice["id"] else {}
        offered = schema_form.fields(schema, blank(schema), prefix=names, errors=errors, posted=typed.posted)
        was = {each.name: each.value for each in schema_form.fields(schema, blank(schema), prefix=names)}
        inputs = [Input(field=each, was=was[each.name]) for each in offered] if choice.get("needs_value") else []
        placed = {place for place in errors for each in inputs if pointers.covers(each.field.pointer, place)}
        loose = [message for place, message in errors.items() if place not in placed]
        label, grants = choice.get("label", choice["id"]), choice.get("grants", False)
        found.append(Answer(id=choice["id"], label=label, grants=grants, inputs=inputs, errors=loose))
    return found
