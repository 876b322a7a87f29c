"""The page that edits a checkpoint's state: its fields as a form, and a live preview of the edit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from agents.access import checkpoint_or_404
from agents.errors import FieldError, RewindRefused
from agents.moves import impact, rewind
from agents.pages.differences import difference_context
from agents.pages.run import offered_moves
from agents.pages.run.offered_moves import PREFIX, TypedOrder, order_of
from approvals import forms
from approvals.forms import MISSING, ClosedNode, Form, FormField, FormGroup, FormNode, all_nodes
from approvals.forms.texts import summarise_value
from approvals.gates.reveal_secret import veil_of
from approvals.policy import step_up
from approvals.presentation.decision_form.faults import FormFault, of_form
from approvals.schema.redact import Redaction
from approvals.views.access import private_get, private_post
from checkpoints import store
from checkpoints.errors import NotVerified
from checkpoints.models import Checkpoint, Run
from checkpoints.runs.plans import PlanSpec, spec_of
from checkpoints.values import json_pointer
from checkpoints.values import patch as patches
from checkpoints.values.patch import Op

Offer = tuple[dict[str, Any], list[FieldError]]  # the context on the order, and the faults of its fields
FEW = 12  # inputs of a field that is drawn unfolded
NO_OBJECT = "Write the whole state: an object with its fields."


@private_get
def page(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Show the form of a checkpoint's state."""
    run, reader = offered_moves.run_to_order(request, run_id)
    if asks := offered_moves.ask_confirmation(request, run, reader):
        return asks
    return render(request, "runs/order/edit.html", edit_context(run, TypedOrder("edit", seq)))


@private_post
def create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Save the edited state as a new checkpoint. 422 if the agent's state does not accept it, 409 as for a rewind."""
    run, reader = offered_moves.run_to_order(request, run_id)
    order = order_of(request, "edit")
    typed = typed_of(run, order)
    if typed.faults:
        return show_refusal(request, edit_context(run, order))
    try:
        rewind.edit(
            run, at=order.at, patch=typed.patch, by=reader, feedback=order.why, seen=order.seen, key=order.once,
            confirmed=step_up.of_session(request),
        )  # fmt: skip
    except RewindRefused as refusal:
        run.refresh_from_db()
        return show_refusal(request, edit_context(run, order), refusal)
    return redirect("run", run.pk)


def show_refusal(request: HttpRequest, context: dict[str, Any], refusal: RewindRefused | None = None) -> HttpResponse:
    """Show the page of an edit or a fork again with the input, and why nothing was done."""
    refusal = refusal or RewindRefused("", [{"pointer": "", "message": ""}])
    notice = context | offered_moves.notice(refusal)
    return render(request, f"runs/order/{context['kind']}.html", notice, status=refusal.status)


def typed_of(run: Run, order: TypedOrder) -> TypedState:
    """Return the input, over the checkpoint's state. Raises NotVerified."""
    checkpoint = checkpoint_or_404(run, order.at)
    state = store.load_checkpoint(checkpoint.id).state
    return read_state(spec_of(checkpoint.plan), state, order.texts, veil_of(checkpoint))


def edit_context(run: Run, order: TypedOrder) -> dict[str, Any]:
    """Return the context of runs/order/edit.html and runs/order/preview.html."""

    def offer(checkpoint: Checkpoint, typed: TypedState) -> Offer:
        shown, refused = None, None
        if typed.patch and not typed.faults:
            what = next(iter(typed.changed)) if len(typed.changed) == 1 else f"{len(typed.changed)} fields"
            heading = f"If you change {what} at checkpoint {checkpoint.seq}"
            people = offered_moves.closing(run, checkpoint.seq)
            look = partial(impact.of_edit, run, order.at, typed.patch, order.why)
            shown, refused = offered_moves.attempt(look, "Change the state", heading, people=people)
        values = {"shown": shown, "refused": offered_moves.sentence(refused), "why": order.why}
        return values, refused.errors if refused else []

    return order_context(run, order, offer)


def order_context(run: Run, order: TypedOrder, offer: Callable[[Checkpoint, TypedState], Offer]) -> dict[str, Any]:
    """Return the context of an edit's or a fork's page: the form with its editors, the changes, and the faults.

    `offer` returns the impact of the input, and the faults of single fields if it is refused.
    """
    checkpoint = checkpoint_or_404(run, order.at)
    order = replace(order, key=order.key or uuid.uuid4().hex)
    context: dict[str, Any] = {"run": run, "checkpoint": checkpoint, "order": order, "kind": order.kind}
    try:
        state = store.load_checkpoint(checkpoint.id).state
    except NotVerified as unverified:
        return context | {"unverified": unverified}
    plan, veil = spec_of(checkpoint.plan), veil_of(checkpoint)
    typed = read_state(plan, state, order.texts, veil)
    result, culprits = offer(checkpoint, typed)
    faults = [*typed.faults, *culprits]
    form = draw_form(plan, state, order.texts, veil, faults)
    context |= result | difference_context(state, typed.state, typed.changed, veil)
    return context | {
        "form": form,
        "editors": list_editors(plan, form, state, checkpoint.next_step, veil),
        "faults": list(of_form(form)) or [FormFault(message=fault["message"]) for fault in faults],
    }


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


def list_editors(plan: PlanSpec, form: Form, state: Mapping[str, Any], then: str, veil: Redaction) -> list[FieldEditor]:
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


def read_state(plan: PlanSpec, state: Mapping[str, Any], posted: Mapping[str, str], veil: Redaction) -> TypedState:
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
