"""The state of a checkpoint as a typed form, and the input as a patch. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agents.errors import FieldError
from approvals import forms
from approvals.forms import MISSING, ClosedNode, Form, FormField, FormGroup, FormNode, all_nodes
from approvals.forms.summaries import summarise_value
from approvals.schema.redact import Redaction
from checkpoints.runs.plans import PlanSpec
from checkpoints.values import json_pointer
from checkpoints.values import patch as patches
from checkpoints.values.patch import Op

PREFIX = "state"  # of the names of its inputs
FEW = 12  # inputs of a field that is drawn unfolded
NO_OBJECT = "Write the whole state: an object with its fields."


@dataclass(frozen=True, slots=True)
class FieldEditor:
    """One field of the state. `readers` are the steps ahead that read it, `brief` is its value in a few words."""

    name: str
    node: FormNode
    brief: str
    readers: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Tell whether somebody edited or moved anything in it."""
        return any(True for _ in self.node.touched())

    @property
    def unfolded(self) -> bool:
        """Tell whether it is drawn open: it is small and a step ahead reads it, or it has a change or an error."""
        small = 0 < sum(isinstance(node, FormField) for node in all_nodes(self.node)) <= FEW
        return (small and bool(self.readers)) or self.changed or any(node.error for node in all_nodes(self.node))

    @property
    def inner(self) -> FormNode:
        """Return its node, without a label that would only repeat the name."""
        plain = isinstance(self.node, (FormField, FormGroup, ClosedNode))
        return replace(self.node, place=replace(self.node.place, label="")) if plain else self.node


@dataclass(frozen=True, slots=True)
class TypedState:
    """The input of a form: the new state, as a patch of the current one, and the faults."""

    state: dict[str, Any]
    patch: list[Op]
    faults: list[FieldError] = field(default_factory=list)

    @property
    def changed(self) -> set[str]:
        """Return the fields that differ."""
        return {json_pointer.split_pointer(op["path"])[0] for op in self.patch}


def draw_form(
    plan: PlanSpec,
    state: Mapping[str, Any],
    posted: Mapping[str, str],
    veil: Redaction,
    faults: Iterable[FieldError] = (),
) -> Form:
    """Draw the form over a state with the posted input, and the faults beside its fields."""
    values: dict[str, str] = {}
    for fault in faults:
        values[fault["pointer"]] = " ".join(filter(None, [values.get(fault["pointer"]), fault["message"]]))
    return forms.build(
        plan.state_schema, state, prefix=PREFIX, posted=posted, errors=values, quoted=plan.external, veil=veil
    )


def editors(plan: PlanSpec, form: Form, state: Mapping[str, Any], then: str, veil: Redaction) -> list[FieldEditor]:
    """Return the drawn fields. Those that the steps from `then` on read come first, in the order of use."""
    masked = veil.masked(dict(state))
    ahead = plan.reachable(then) if then in {step.name for step in plan.steps} else set()
    steps = [step for step in plan.steps if step.name in ahead]
    read = {name: at for at, name in enumerate(dict.fromkeys(name for step in steps for name in step.reads))}
    if not isinstance(form.root, FormGroup):  # a plan whose state has no schema
        return [FieldEditor("", form.root, summarise_value(masked))]
    named = {forms.names.decoded(node.path[1:]): node for node in form.root.members}
    return [
        FieldEditor(
            name,
            named[name],
            summarise_value(masked.get(name, MISSING)),
            tuple(s.title for s in steps if name in s.reads),
        )
        for name in sorted(named, key=lambda field_name: read.get(field_name, len(read)))
    ]


def read(plan: PlanSpec, state: Mapping[str, Any], posted: Mapping[str, str], veil: Redaction) -> TypedState:
    """Return the input. A field that was not posted, or came back as it was drawn, keeps its value."""
    form = forms.build(plan.state_schema, state, prefix=PREFIX, posted=posted, inputs=0, veil=veil)
    faults: list[FieldError] = [{"pointer": at, "message": word} for at, word in form.errors.items()]
    wanted = form.value
    if not isinstance(wanted, dict):
        wanted = dict(state)
        faults.append({"pointer": "", "message": str(NO_OBJECT)})
    names = {name for name in wanted.keys() | state.keys() if wanted.get(name, MISSING) is not state.get(name, MISSING)}
    before, after = ({name: item[name] for name in names if name in item} for item in (state, wanted))
    return TypedState(wanted, patches.diff(before, after), faults)
