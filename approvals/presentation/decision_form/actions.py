"""The actions of a gate as forms: pinned values first, then typed fields, then the reader's edit as a diff."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from django.utils.translation import gettext as _

from approvals import forms
from approvals.cards.action import Action
from approvals.cards.card import AnswerChoice, Card
from approvals.errors import Problem
from approvals.forms import MISSING, Form, FormField, FormNode
from approvals.presentation.gate_facts.outcomes import ActionOutcome
from approvals.presentation.gate_facts.provenance import HERE, Provenance
from approvals.presentation.text import amounts, exact_call
from approvals.schema import redact, walk
from checkpoints.runs.plans import in_words
from checkpoints.values import json_pointer, patch

from .verdict_choice import Ballot


@dataclass(frozen=True, kw_only=True)
class PinnedValue:
    """A dangerous value: never folded, never clamped."""

    label: str
    value: Any
    place: str = ""  # its pointer within the arguments
    name: str = ""  # of the input that edits it
    parts: str = ""  # what the names of the inputs begin with that edit it part by part
    before: Any = None
    changed: str = ""  # who changed it: "you", "others", or nobody
    editable: bool = False
    unit: str = ""  # the currency beside an amount
    wrong: bool = False  # what was typed for it cannot be read, so there is no amount in words
    quoted: bool = False  # `label` is its real name, and `said` what the program that asks calls it
    said: str = ""

    @property
    def words(self) -> str:
        """Write the amount in words; "" beside a field that was changed to something else."""
        return amounts.in_words(self.value, self.unit) if self.unit and not self.wrong else ""


@dataclass(frozen=True, kw_only=True)
class ActionSheet:
    """One action: what will be called, with what."""

    number: int
    action: Action
    pinned: Sequence[PinnedValue] = ()
    form: Form | None = None  # where it can be edited
    values: Sequence[FormNode] = ()  # the same fields of an action that cannot be edited, less what is pinned
    shown: Any = None  # its arguments, where no schema names their fields
    changes: Sequence[Mapping[str, Any]] = ()  # rows of the reader's own edit
    errors: Sequence[str] = ()  # that belong to no field
    value_text: str = ""  # the arguments as JSON, for "put this value in its place"
    ballot: Ballot | None = None  # the choice beside it, where each action is decided by itself
    judged: ActionOutcome | None = None  # what became of it
    quoted: bool = False  # the program that asks wrote its title and labels

    @property
    def prefix(self) -> str:
        return prefix(self.action)

    def label_of(self, place: str) -> str:
        """Return what people call the argument at a pointer."""
        nodes = self.form.nodes if self.form else ()
        named = next((each.label for each in nodes if each.pointer == place), "")
        return named or " ".join(json_pointer.tokens(place)).replace("_", " ")

    @property
    def named(self) -> str:
        """Return the action's name in our own words."""
        return self.action.tool if self.quoted else self.action.title

    @property
    def fields(self) -> Sequence[FormField]:
        """List every input that is drawn."""
        return self.form.fields if self.form else ()


@dataclass(frozen=True, kw_only=True)
class TypedDecision:
    """What somebody typed and has not managed to send. `arguments` is by action id, where it could be read."""

    posted: Mapping[str, str] = dataclass_field(default_factory=dict)
    arguments: Mapping[str, Any] = dataclass_field(default_factory=dict)
    errors: Sequence[Problem] = ()
    state: Mapping[str, Any] | None = None  # where the whole of it was typed anew
    rows: Sequence[Mapping[str, Any]] = ()  # how that differs from what was on the screen
    patch: Sequence[Mapping[str, Any]] = ()  # on the gate's state, where what was typed is a valid edit
    card: Card | None = None  # as it would be by that edit


def prefix(action: Action) -> str:
    """Return what the names of an action's inputs begin with."""
    return f"args.{action.id}"


def editable(action: Action) -> bool:
    return action.edits and action.arguments is not None


def sheets(
    card: Card,
    *,
    typed: TypedDecision | None = None,
    before: Card | None = None,
    read_only: bool = False,
    provenance: Provenance = HERE,
) -> list[ActionSheet]:
    """Build one sheet an action. `typed`: what was typed; `before`: the card that the agent proposed at first."""
    typed = typed or TypedDecision()
    found: list[ActionSheet] = []
    left = forms.INPUTS  # that all actions share: a gate is one form, and a browser posts all of it
    for number, action in enumerate(card.actions, 1):
        share = left // (len(card.actions) - len(found))
        found.append(
            sheet(
                action, number=number, typed=typed, before=before, read_only=read_only, inputs=share,
                quoted=provenance.quotes(action),
            )
        )  # fmt: skip
        left = max(left - len(found[-1].fields), 0)
    return found


def sheet(
    action: Action,
    *,
    number: int,
    typed: TypedDecision,
    before: Card | None,
    read_only: bool,
    inputs: int = forms.INPUTS,
    quoted: bool = False,
) -> ActionSheet:
    """Build one action's sheet with its form, which draws at most `inputs` inputs. `quoted`: as Sheet has it."""
    mine = typed.arguments.get(action.id, action.arguments)
    errors = {e["pointer"]: e["message"] for e in typed.errors if e["action"] == action.id and not e["part"]}
    form = None
    if not read_only and editable(action):
        form = form_of(action, typed.posted, errors=errors, inputs=inputs, quoted=quoted)
    values = [] if form else values_of(action, quoted=quoted)
    proposed = before.action(action.id) if before else None
    return ActionSheet(
        number=number,
        action=action,
        pinned=pinned_of(action, mine=mine, before=proposed, form=form, values=values, wrong=errors, quoted=quoted),
        form=form,
        values=[each for each in values if not each.pinned],
        shown=None if form or values else without(veil_of(action).masked(action.arguments), action.pinned),
        changes=changes_of(action, action.arguments, mine) if mine != action.arguments else (),
        errors=loose(form, errors),
        value_text=json_of(action) if form else "",
        quoted=quoted,
    )


def veil_of(action: Action) -> redact.Redaction:
    """Return what is secret in an action's arguments."""
    return redact.veil(action.schema)


def changes_of(action: Action, before: Any, after: Any) -> list[dict[str, Any]]:
    """List how two arguments of an action differ, as rows that hide what is secret."""
    return veil_of(action).rows(patch.changes(before, after))


def form_of(
    action: Action,
    posted: Mapping[str, str],
    *,
    errors: Mapping[str, str] | None = None,
    inputs: int = forms.INPUTS,
    quoted: bool = False,
) -> Form:
    """Build the form of an action's arguments, with what was typed; a whole field of the state goes by its name."""
    field = action.pointer.removeprefix("/")
    return forms.build(
        action.schema, action.arguments, prefix=prefix(action), posted=posted, errors=errors, pinned=action.pinned,
        missing=action.missing, inputs=inputs, quoted=quoted,
        label=in_words(field) if field and "/" not in field else "",
    )  # fmt: skip


def loose(form: Form | None, errors: Mapping[str, str]) -> list[str]:
    """List the errors that no node of the form shows."""
    if form is None:
        return list(errors.values())
    shown = " ".join(node.error for node in form.nodes)
    return [message for message in errors.values() if message not in shown]


def json_of(action: Action) -> str:
    """Write the arguments as JSON, for a form; "" where that would be too long to carry back."""
    text = forms.texts.written("json", veil_of(action).masked(action.arguments, named=True))
    return text if len(text) <= forms.EDITABLE else ""


def values_of(action: Action, *, quoted: bool = False) -> list[FormNode]:
    """List the fields that the schema names, to be read only; none where it names no fields."""
    shown = veil_of(action).masked(action.arguments)
    root = forms.build(action.schema, shown, prefix=prefix(action), pinned=action.pinned, quoted=quoted).root
    return [each for each in root.children if each.value is not forms.MISSING] if root.kind == "group" else []


def pinned_of(
    action: Action, *, mine: Any, before: Action | None, form: Form | None, values: Sequence[FormNode] = (),
    wrong: Container[str] = (), quoted: bool = False,
) -> list[PinnedValue]:  # fmt: skip
    """List the pinned values, `mine` beside the current ones. `wrong`: pointers of typed ones that cannot be read."""
    known = form.nodes if form else [inner for each in values for inner in forms.all_nodes(each)]
    fields = {each.pointer: each for each in known if isinstance(each, FormField)}
    names = {each.pointer: each.name for each in known}
    called = {each.pointer: each for each in known if each.label}
    found = []
    for place in action.pinned:
        stands = at(action.arguments, place)
        value, proposed = at(mine, place), at(before.arguments, place) if before else stands
        if value is MISSING and stands is MISSING:
            continue
        changed = "you" if value != stands else "others" if stands != proposed else ""
        hidden = veil_of(action).at(place)
        label, said = _called(called.get(place), place, quoted=quoted)
        old, field = stands if changed == "you" else proposed, fields.get(place)
        parts = names.get(place, "") if form and field is None else ""
        beside = at(mine, place.rpartition("/")[0])
        found.append(
            PinnedValue(
                label=label, place=place, said=said, quoted=quoted, value=shown(hidden.masked(value)),
                name=field.name if field else "", parts=parts,
                before=shown(hidden.masked(old)), changed=changed,
                editable=form is not None and (field.open if field else any(each.pointer == place for each in known)),
                unit=forms.unit_in(beside) if field is not None and field.kind == "decimal" else "",
                wrong=place in wrong,
            )
        )  # fmt: skip
    return found


def _called(node: FormNode | None, place: str, *, quoted: bool) -> tuple[str, str]:
    """Return (the name of a pinned value, where `quoted` also what the program that asks calls it)."""
    if quoted:
        return exact_call.dotted(place) or _("all of it"), node.said if node else ""
    plain = node.label if node else " ".join(json_pointer.tokens(place)).replace("_", " ")
    return plain or _("all of it"), ""


def at(value: Any, place: str) -> Any:
    """Return the value at a pointer, or MISSING."""
    return json_pointer.find(value, place) if json_pointer.has(value, place) else MISSING


def shown(value: Any) -> Any:
    """Return a pinned value, or the words for one that is not there."""
    return _("(not there)") if value is MISSING else value


def without(arguments: Any, places: Sequence[str]) -> Any:
    """Return the arguments less what is already shown as pinned."""
    if not isinstance(arguments, dict):
        return None if "" in places else arguments
    tops = {json_pointer.tokens(place)[0] for place in places if len(json_pointer.tokens(place)) == 1}
    return {name: value for name, value in arguments.items() if name not in tops}


def changes_between(old: Card, new: Card) -> list[dict[str, Any]]:
    """List what differs between two versions of a proposal, as rows for a diff."""
    rows: list[dict[str, Any]] = []
    for action in new.actions:
        earlier = old.action(action.id)
        if earlier is None or patch.same(earlier.arguments, action.arguments):
            continue
        several = len(new.actions) > 1
        for row in changes_of(action, earlier.arguments, action.arguments):
            rows.append({**row, "pointer": (f"/{action.id}" if several else "") + row["pointer"]})
    return rows


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
    choice: AnswerChoice, posted: Mapping[str, str], errors: Mapping[str, str] | None = None, *, quoted: bool = False
) -> Form:
    """Build the form of a value that nobody has written yet."""
    schema = choice.get("schema") or {}
    return forms.build(
        schema, blank(schema), prefix=answer_prefix(choice["id"]), posted=posted, errors=errors, quoted=quoted
    )


def blank(schema: Mapping[str, Any]) -> Any:
    """Return what such a form starts from: the default, or an object to fill in."""
    part = walk.resolved(schema, schema)
    return schema.get("default", {} if part.get("type") == "object" else None)


def answers(card: Card, *, typed: TypedDecision, quoted: bool = False) -> list[AnswerForm]:
    """List the choices of a gate's question. `quoted`: a program elsewhere wrote the words of the values' schemas."""
    question = card.question
    if question is None:
        return []
    found = []
    for choice in question["choices"]:
        mine = {e["pointer"].removeprefix("/value"): e["message"] for e in typed.errors if not e["action"]}
        errors = mine if typed.posted.get("answer") == choice["id"] else {}
        form = answer_form(choice, typed.posted, errors, quoted=quoted) if choice.get("needs_value") else None
        label, grants = choice.get("label", choice["id"]), choice.get("grants", False)
        found.append(AnswerForm(id=choice["id"], label=label, grants=grants, form=form, errors=loose(form, errors)))
    return found
