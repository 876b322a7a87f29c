"""The page that edits a checkpoint's state: its fields as a form, and a live preview of the edit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from agents.errors import FieldError, RewindRefused
from agents.moves import impact, rewind
from agents.presentation import editors
from agents.queries.access import private
from agents.queries.checkpoint import checkpoint_or_404, difference_context
from agents.views.run_page import offered_moves
from agents.views.run_page.typed_order import TypedOrder, order_of
from approvals.gates.state_secrets import veil_of
from approvals.policy import step_up
from approvals.presentation.decision_form.faults import FormFault, of_form
from checkpoints import store
from checkpoints.errors import NotVerified
from checkpoints.models import Checkpoint, Run
from checkpoints.runs.plans import spec_of

Offer = tuple[dict[str, Any], list[FieldError]]  # the context on the order, and the faults of its fields


@require_safe
@private
def page(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Show the form of a checkpoint's state."""
    run, reader = offered_moves.run_to_order(request, run_id)
    if asks := offered_moves.ask_confirmation(request, run, reader):
        return asks
    return render(request, "runs/order/edit.html", edit_context(run, TypedOrder("edit", seq)))


@require_POST
@private
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


def typed_of(run: Run, order: TypedOrder) -> editors.TypedState:
    """Return the input, over the checkpoint's state. Raises NotVerified."""
    checkpoint = checkpoint_or_404(run, order.at)
    state = store.load_checkpoint(checkpoint.id).state
    return editors.read(spec_of(checkpoint.plan), state, order.texts, veil_of(checkpoint))


def edit_context(run: Run, order: TypedOrder) -> dict[str, Any]:
    """Return the context of runs/order/edit.html and runs/order/preview.html."""

    def offer(checkpoint: Checkpoint, typed: editors.TypedState) -> Offer:
        shown, refused = None, None
        if typed.patch and not typed.faults:
            heading, people = (
                _heading(sorted(typed.changed), checkpoint.seq),
                offered_moves.closing(run, checkpoint.seq),
            )
            look = partial(impact.of_edit, run, order.at, typed.patch, order.why)
            shown, refused = offered_moves.attempt(look, "Change the state", heading, people=people)
        values = {"shown": shown, "refused": offered_moves.sentence(refused), "why": order.why}
        return values, refused.errors if refused else []

    return order_context(run, order, offer)


def order_context(
    run: Run, order: TypedOrder, offer: Callable[[Checkpoint, editors.TypedState], Offer]
) -> dict[str, Any]:
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
    typed = editors.read(plan, state, order.texts, veil)
    result, culprits = offer(checkpoint, typed)
    faults = [*typed.faults, *culprits]
    form = editors.draw_form(plan, state, order.texts, veil, faults)
    context |= result | difference_context(state, typed.state, typed.changed, veil)
    return context | {
        "form": form,
        "editors": editors.editors(plan, form, state, checkpoint.next_step, veil),
        "faults": list(of_form(form)) or [FormFault(message=fault["message"]) for fault in faults],
    }


def _heading(names: Sequence[str], seq: int) -> str:
    what = names[0] if len(names) == 1 else f"{len(names)} fields"
    return f"If you change {what} at checkpoint {seq}"
