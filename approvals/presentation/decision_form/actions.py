"""Builds the forms of a gate's actions: pinned values first, then typed fields, then the reader's edit as a diff.

It also builds the answers to a gate's question, each with the form of the value it needs.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from itertools import groupby
from typing import Any

from approvals import forms
from approvals.cards.action import Action
from approvals.cards.card import AnswerChoice, Card
from approvals.cards.drawing import COMMAND, FIELDS, Drawing, present_of
from approvals.cards.unreadable import UnreadablePart
from approvals.errors import Problem
from approvals.forms import MISSING, Form, FormField, FormNode, merging
from approvals.presentation.gate_facts.outcomes import ActionOutcome
from approvals.presentation.gate_facts.provenance import HERE, Provenance
from approvals.presentation.text import amounts, exact_call, line_diff, size_limit
from approvals.presentation.text.line_diff import Line
from approvals.schema import redact, walk
from checkpoints.runs.plans import in_words
from checkpoints.values import artifacts, json_pointer, patch

from . import left_out
from .verdict_choice import Ballot


@dataclass(frozen=True, kw_only=True)
class ActionSheet:
    """One action on the page: its call, and the form of its arguments."""

    number: int
    action: Action
    named: str  # for Holdpoint's sentences: the tool's name where an external program wrote the title
    pinned: Sequence[PinnedValue] = ()
    drawn: Sequence[DrawnArguments] = ()
    form: Form | None = None  # where it can be edited
    values: Sequence[FormNode] = ()  # the fields of an action that cannot be edited, without pinned ones
    shown: Any = None  # its arguments, where no schema names their fields
    changes: Sequence[Mapping[str, Any]] = ()  # rows of the reader's own edit
    errors: Sequence[str] = ()  # errors that belong to no field
    value_text: str = ""  # the arguments as JSON, for "put this value in its place"
    ballot: Ballot | None = None  # the choice beside it, where each action is decided by itself
    judged: ActionOutcome | None = None  # its outcome at a closed gate
    quoted: bool = False  # an external program wrote its title and labels
    unreadable: Sequence[UnreadablePart] = ()  # what would run and cannot be read here

    @property
    def prefix(self) -> str:
        return prefix(self.action)

    def label_of(self, place: str) -> str:
        """Return the label of the argument at a pointer."""
        nodes = self.form.nodes if self.form else ()
        named = next((each.label for each in nodes if each.pointer == place), "")
        return named or " ".join(json_pointer.split_pointer(place)).replace("_", " ")

    @property
    def unread(self) -> list[tuple[str, str]]:
        """List the arguments that cannot be read here, each by its label, and what it is."""
        return [(self.label_of(part.at), part.why) for part in self.unreadable]

    @property
    def has_files(self) -> bool:
        """Tell whether files are among its arguments."""
        return any(artifacts.references(self.action.masked))

    @property
    def fields(self) -> Sequence[FormField]:
        """List every input of the form."""
        return self.form.fields if self.form else ()


@dataclass(frozen=True, kw_only=True)
class TypedDecision:
    """Typed values that are not sent yet, or were refused. `arguments`: by action id, where they could be read."""

    posted: Mapping[str, str] = dataclass_field(default_factory=dict)
    arguments: Mapping[str, Any] = dataclass_field(default_factory=dict)
    errors: Sequence[Problem] = ()
    state: Mapping[str, Any] | None = None  # the whole state, where that was typed
    rows: Sequence[Mapping[str, Any]] = ()  # its differences from the state on the screen
    patch: Sequence[Mapping[str, Any]] = ()  # JSON Patch on the gate's state, where the typed values are a valid edit
    card: Card | None = None  # the card after that edit


def prefix(action: Action) -> str:
    """Return the prefix of an action's inputs."""
    return f"args.{action.id}"


def sheets(
    card: Card,
    *,
    typed: TypedDecision | None = None,
    before: Card | None = None,
    read_only: bool = False,
    provenance: Provenance = HERE,
    ballots: Mapping[str, Ballot] | None = None,
    judged: Mapping[str, ActionOutcome] | None = None,
) -> list[ActionSheet]:
    """Build one sheet an action. `typed`: what was typed; `before`: the card that the agent proposed at first.

    `ballots` and `judged`: each action's own choice, and its outcome, by its id.
    """
    typed = typed or TypedDecision()
    found: list[ActionSheet] = []
    left = forms.INPUTS  # shared by all actions: a gate is one form, and a browser posts all of it
    for number, action in enumerate(card.actions, 1):
        mine, quoted = typed.arguments.get(action.id, action.arguments), provenance.quotes(action)
        errors = {e["pointer"]: e["message"] for e in typed.errors if e["action"] == action.id and not e["part"]}
        form = None
        if not read_only and action.editable:
            share = left // (len(card.actions) - len(found))
            form = form_of(action, typed.posted, errors=errors, inputs=share, quoted=quoted)
            left = max(left - len(form.fields), 0)
        values = [] if form else values_of(action, quoted=quoted)
        proposed = before.action(action.id) if before else None
        as_json = forms.texts.written("json", action.redaction.masked(action.arguments, named=True)) if form else ""
        pinned = pinned_of(action, mine=mine, before=proposed, form=form, values=values, wrong=errors, quoted=quoted)
        found.append(
            ActionSheet(
                number=number,
                action=action,
                named=provenance.named(action),
                pinned=pinned,
                drawn=_drawn(action, form, typed.posted),
                form=form,
                values=[each for each in values if not each.pinned],
                shown=None if form or values else without(action.masked, action.pinned),
                changes=changes_of(action, action.arguments, mine) if mine != action.arguments else (),
                errors=loose(form, errors),
                value_text=as_json if len(as_json) <= forms.EDITABLE else "",
                ballot=(ballots or {}).get(action.id),
                judged=(judged or {}).get(action.id),
                quoted=quoted,
                unreadable=card.unreadable.get(action.id, ()),
            )
        )
    return found


def _drawn(action: Action, form: Form | None, posted: Mapping[str, str]) -> list[DrawnArguments]:
    """Draw the arguments, with a box beside each change that may be left out."""
    fields = {each.pointer: each for each in form.fields} if form else {}
    found = []
    for drawn in (each for hint in action.draws for each in _drawings(action, hint)):
        rows = [left_out.boxed(row, fields.get(row["pointer"]), row.get("before"), posted) for row in drawn.rows]
        field, stretches = fields.get(drawn.place), {line.hunk for line in drawn.lines if line.hunk}
        if field and stretches and not drawn.new and left_out.takes(field) and field.kind in ("text", "long"):
            dropped = left_out.stretches_in(posted, field.name)
            drawn = replace(drawn, input=field.name, boxes={number: number in dropped for number in stretches})
        found.append(replace(drawn, rows=rows))
    return found


def changes_of(action: Action, before: Any, after: Any) -> list[dict[str, Any]]:
    """List the differences between two values of an action's arguments, as rows with secrets masked."""
    return action.redaction.rows(patch.list_changes(before, after))


def form_of(
    action: Action,
    posted: Mapping[str, str],
    *,
    errors: Mapping[str, str] | None = None,
    inputs: int = forms.INPUTS,
    quoted: bool = False,
) -> Form:
    """Build the form of an action's arguments, with the typed texts; a field of the state is labelled by its name."""
    field = action.pointer.removeprefix("/")
    built = forms.build(
        action.shown_schema, action.arguments, prefix=prefix(action), posted=posted, errors=errors,
        pinned=action.pinned, missing=action.missing, inputs=inputs, quoted=quoted,
        label=in_words(field) if field and "/" not in field else "",
    )  # fmt: skip
    if "rendered" not in action.derived and not built.touched:
        action.derived["rendered"] = merging.rendered(built)  # by which a post is read without building its form
    return built


def loose(form: Form | None, errors: Mapping[str, str]) -> list[str]:
    """List the errors that no node of the form shows."""
    if form is None:
        return list(errors.values())
    shown = " ".join(node.error for node in form.nodes)
    return [message for message in errors.values() if message not in shown]


def values_of(action: Action, *, quoted: bool = False) -> list[FormNode]:
    """List the fields that the schema names, read-only; none where it names no fields."""
    built = forms.build(action.shown_schema, action.masked, prefix=prefix(action), pinned=action.pinned, quoted=quoted)
    root = built.root
    return [each for each in root.children if each.value is not forms.MISSING] if root.kind == "group" else []


def without(arguments: Any, places: Sequence[str]) -> Any:
    """Return the arguments without those already shown as pinned."""
    if not isinstance(arguments, dict):
        return None if "" in places else arguments
    tops = {json_pointer.split_pointer(place)[0] for place in places if len(json_pointer.split_pointer(place)) == 1}
    return {name: value for name, value in arguments.items() if name not in tops}


def changes_between(old: Card, new: Card) -> list[dict[str, Any]]:
    """List the differences between two versions of a proposal, as rows for a diff."""
    rows: list[dict[str, Any]] = []
    for action in new.actions:
        earlier = old.action(action.id)
        if earlier is None or patch.are_same(earlier.arguments, action.arguments):
            continue
        several = len(new.actions) > 1
        for row in changes_of(action, earlier.arguments, action.arguments):
            place = (f"/{action.id}" if several else "") + row["pointer"]
            rows.append({**row, "pointer": place, "action": action.id, "place": row["pointer"]})
    return rows


@dataclass(frozen=True, kw_only=True)
class PinnedValue:
    """A pinned value, which is never folded or clamped."""

    label: str
    value: Any
    place: str = ""  # its pointer within the arguments
    name: str = ""  # of the input that edits it
    parts: str = ""  # the prefix of the inputs that edit it part by part
    before: Any = None
    changed: str = ""  # who changed it: "you", "others", or nobody
    editable: bool = False
    unit: str = ""  # the currency beside an amount
    wrong: bool = False  # the typed text cannot be read, so there is no amount in words
    quoted: bool = False  # `label` is its real name, and `said` the external program's name for it
    said: str = ""

    @property
    def words(self) -> str:
        """Write the amount in words; "" without a currency, or where the typed text cannot be read."""
        return amounts.in_words(self.value, self.unit) if self.unit and not self.wrong else ""


def pinned_of(
    action: Action, *, mine: Any, before: Action | None, form: Form | None, values: Sequence[FormNode] = (),
    wrong: Container[str] = (), quoted: bool = False,
) -> list[PinnedValue]:  # fmt: skip
    """List the pinned values, with the reader's own `mine`. `wrong`: pointers of typed ones that cannot be read."""
    known = form.nodes if form else [inner for each in values for inner in forms.all_nodes(each)]
    fields = {each.pointer: each for each in known if isinstance(each, FormField)}
    names = {each.pointer: each.name for each in known}
    called = {each.pointer: each for each in known if each.label}
    found = []
    for place in action.pinned:
        stands, value = (json_pointer.get(each, place, MISSING) for each in (action.arguments, mine))
        if value is MISSING and stands is MISSING:
            continue
        proposed = json_pointer.get(before.arguments, place, MISSING) if before else stands
        changed = "you" if value != stands else "others" if stands != proposed else ""
        masked = map(action.redaction.at(place).masked, (value, stands if changed == "you" else proposed))
        now, was = ("(not there)" if each is MISSING else each for each in masked)
        label, said = _called(called.get(place), place, quoted=quoted)
        field = fields.get(place)
        beside = json_pointer.get(mine, place.rpartition("/")[0], MISSING)
        found.append(
            PinnedValue(
                label=label, place=place, said=said, quoted=quoted, value=now, before=was, changed=changed,
                name=field.name if field else "", parts=names.get(place, "") if form and field is None else "",
                editable=form is not None and (field.open if field else any(each.pointer == place for each in known)),
                unit=forms.unit_in(beside) if field is not None and field.kind == "decimal" else "",
                wrong=place in wrong,
            )
        )  # fmt: skip
    return found


def _called(node: FormNode | None, place: str, *, quoted: bool) -> tuple[str, str]:
    """Return (the name of a pinned value, where `quoted` also the external program's name for it)."""
    if quoted:
        return exact_call.dotted(place) or "all of it", node.place.title if node else ""
    plain = node.label if node else " ".join(json_pointer.split_pointer(place)).replace("_", " ")
    return plain or "all of it", ""


@dataclass(frozen=True, kw_only=True)
class DrawnArguments:
    """One drawing, with the names of the arguments that it shows."""

    kind: str
    arguments: Sequence[str]
    name: str = ""  # of what is changed
    lines: Sequence[Line] = ()
    added: int = 0
    removed: int = 0
    unended: bool = False  # a line break at the end comes or goes
    new: bool = False  # there is no text that goes
    as_asked: bool = False  # the text that goes is what the agent found there when it asked
    place: str = ""  # JSON Pointer of the new text in the arguments
    long: bool = False  # too long to be compared: it has no lines
    command: str = ""
    words: str = ""  # of whoever asks
    input: str = ""  # the input of the new text, where single changes of it may be left out
    rows: Sequence[Mapping[str, Any]] = ()  # of fields
    boxes: Mapping[int, bool] = dataclass_field(default_factory=dict)  # number of a change -> whether it is left out

    @property
    def hunks(self) -> list[tuple[int, bool, list[Line]]]:
        """List the lines by change: (its number, 0 for what no box is beside; whether it is left out; its lines)."""
        runs = groupby(self.lines, key=lambda line: line.hunk if line.hunk in self.boxes else 0)
        return [(number, self.boxes.get(number, False), list(lines)) for number, lines in runs]


def _drawings(action: Action, drawing: Drawing) -> Iterator[DrawnArguments]:
    """Draw the arguments as they are now; what people's edits turned into something else is not drawn."""
    if drawing.kind == FIELDS:  # an object beside the one that is there now, field by field
        now, hidden = json_pointer.get(action.arguments, drawing.at), action.redaction.at(drawing.at)
        name = json_pointer.get(action.masked, drawing.name) if drawing.name else ""
        if isinstance(now, dict):
            rows = hidden.rows(patch.list_changes(present_of(drawing), now))
            yield DrawnArguments(
                kind=FIELDS, arguments=[exact_call.dotted(drawing.at)] if drawing.at else [], as_asked=True,
                rows=[{**row, "pointer": drawing.at + row["pointer"]} for row in rows],
                name=name if isinstance(name, str) else "",
            )  # fmt: skip
        return
    shown = {member: json_pointer.get(action.masked, place) for member, place in drawing.places.items()}
    if not all(isinstance(value, str) for value in shown.values()):
        return
    arguments = [exact_call.dotted(drawing.places[member]) for member in ("before", "at") if member in drawing.places]
    at = shown["at"]
    if drawing.kind == COMMAND:
        yield DrawnArguments(kind=drawing.kind, arguments=arguments, command=at, words=shown.get("words", ""))
        return
    before = shown.get("before", drawing.was)
    drawn = DrawnArguments(
        kind=drawing.kind, arguments=arguments, name=shown.get("name", ""),
        new="before" not in shown and not drawing.was, as_asked=bool(drawing.was), place=drawing.at,
    )  # fmt: skip
    if not size_limit.compares(len(before) + len(at)):
        yield replace(drawn, long=True)
        return
    added, removed = line_diff.counted(before, at)
    lines, unended = line_diff.compared(before, at), line_diff.unended(before, at)
    yield replace(drawn, lines=lines, added=added, removed=removed, unended=unended)


@dataclass(frozen=True, kw_only=True)
class AnswerForm:
    """One answer that a gate offers, with the form of the value it needs."""

    id: str
    label: str
    grants: bool = False  # it lets the gate's effects run
    form: Form | None = None
    errors: Sequence[str] = ()

    @property
    def prefix(self) -> str:
        return answer_prefix(self.id)


def answer_prefix(choice_id: str) -> str:
    return "value." + forms.names.encoded(choice_id).replace("!", "%21").replace("~1", "%2F")


def answer_form(
    card: Card,
    choice: AnswerChoice,
    posted: Mapping[str, str],
    errors: Mapping[str, str] | None = None,
    *,
    quoted: bool = False,
) -> Form:
    """Build the form of an answer's value, which starts blank."""
    schema = redact.masking(choice.get("schema") or {}, card.source)
    return forms.build(
        schema, blank(schema), prefix=answer_prefix(choice["id"]), posted=posted, errors=errors, quoted=quoted
    )


def blank(schema: Mapping[str, Any]) -> Any:
    """Return the value that such a form starts with: the default, or an object to fill in."""
    part = walk.resolve_part(schema, schema)
    return schema.get("default", {} if part.get("type") == "object" else None)


def answers(card: Card, *, typed: TypedDecision, quoted: bool = False) -> list[AnswerForm]:
    """List the choices of a gate's question. `quoted`: an external program wrote the words of the values' schemas."""
    question = card.question
    if question is None:
        return []
    found = []
    for choice in question["choices"]:
        mine = {e["pointer"].removeprefix("/value"): e["message"] for e in typed.errors if not e["action"]}
        errors = mine if typed.posted.get("answer") == choice["id"] else {}
        form = answer_form(card, choice, typed.posted, errors, quoted=quoted) if choice.get("needs_value") else None
        label, grants = choice.get("label", choice["id"]), choice.get("grants", False)
        found.append(AnswerForm(id=choice["id"], label=label, grants=grants, form=form, errors=loose(form, errors)))
    return found
