"""Editing a checkpoint's state: a page with its fields as a form, and what the edit would do as it is typed."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from agents.errors import FieldError, RewindRefused
from agents.moves import impact, rewind
from agents.presentation import editors
from agents.queries.access import private
from agents.queries.checkpoint import checkpoint_or_404, difference, veil_of
from agents.queries.refusal_status import status_of
from agents.views.run_page import offered_moves
from agents.views.run_page.typed_order import TypedOrder, order_of
from approvals.presentation.decision_form.faults import FormFault, of_form
from checkpoints import store
from checkpoints.errors import NotVerified
from checkpoints.models import Checkpoint, Run


@require_safe
@private
def page(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Show the state of a checkpoint, to be edited."""
    run, _ = offered_moves.run_to_order(request, run_id)
    return render(request, "runs/edit.html", edit_context(run, TypedOrder("edit", seq)))


@require_POST
@private
def create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Save the edited state as a new checkpoint. 422 where the agent's state does not take it, 409 as for a rewind."""
    run, reader = offered_moves.run_to_order(request, run_id)
    order = order_of(request, "edit")
    typed = typed_of(run, order)
    if typed.faults:
        return refused(request, edit_context(run, order))
    try:
        rewind.edit(run, at=order.at, patch=typed.patch, by=reader, feedback=order.why, seen=order.seen, key=order.once)
    except RewindRefused as refusal:
        run.refresh_from_db()
        return refused(request, edit_context(run, order), refusal)
    return redirect("run", run.pk)


def refused(request: HttpRequest, context: dict[str, Any], refusal: RewindRefused | None = None) -> HttpResponse:
    """Show the page of an edit or a fork with what was typed, and why nothing was done."""
    refusal = refusal or RewindRefused("", [{"pointer": "", "message": ""}])
    said = context | offered_moves.notice(refusal)
    return render(request, f"runs/{context['kind']}.html", said, status=status_of(refusal))


def typed_of(run: Run, order: TypedOrder) -> editors.TypedState:
    """Return what was typed, over the checkpoint's state. Raises NotVerified."""
    checkpoint = checkpoint_or_404(run, order.at)
    return editors.read(offered_moves.plan_at(checkpoint), store.load_checkpoint(checkpoint.id).state, order.texts)


def edit_context(run: Run, order: TypedOrder) -> dict[str, Any]:
    """Return the context of runs/edit.html and runs/_order_panel.html: editors, changes, faults and impact."""
    checkpoint = checkpoint_or_404(run, order.at)
    order = replace(order, key=order.key or uuid.uuid4().hex)
    context: dict[str, Any] = {"run": run, "checkpoint": checkpoint, "order": order, "kind": "edit"}
    try:
        state = store.load_checkpoint(checkpoint.id).state
    except NotVerified as unverified:
        return context | {"unverified": unverified}
    typed = editors.read(offered_moves.plan_at(checkpoint), state, order.texts)
    faults, shown, refused = list(typed.faults), None, None
    if typed.patch and not faults:
        heading = _heading(sorted(typed.changed), checkpoint.seq)
        look = partial(impact.of_edit, run, order.at, typed.patch, order.why)
        shown, refused = offered_moves.attempt(look, _("Change the state"), heading, people=offered_moves.closing(run))
        faults += refused.errors if refused else []
    context |= {"shown": shown, "refused": offered_moves.sentence(refused), "why": order.why}
    return context | state_context(checkpoint, state, order, typed, faults)


def state_context(
    checkpoint: Checkpoint,
    state: dict[str, Any],
    order: TypedOrder,
    typed: editors.TypedState,
    faults: Sequence[FieldError],
) -> dict[str, Any]:
    """Return the form with its editors, and the difference that was typed, as rows."""
    plan = offered_moves.plan_at(checkpoint)
    form = editors.drawn(plan, state, order.texts, faults)
    return difference(state, typed.state, typed.changed, veil_of(checkpoint)) | {
        "form": form,
        "editors": editors.editors(plan, form, state, checkpoint.next_step),
        "faults": list(of_form(form)) or [FormFault(message=each["message"]) for each in faults],
    }


def _heading(names: Sequence[str], seq: int) -> str:
    facts = {"field": names[0], "count": len(names), "seq": seq}
    one, many = (
        _("If you change %(field)s at checkpoint %(seq)s"),
        _("If you change %(count)s fields at checkpoint %(seq)s"),
    )
    return (one if len(names) == 1 else many) % facts
