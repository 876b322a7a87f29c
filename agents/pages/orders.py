"""Orders from a run's own page: rewind it, wake it, cancel it, or undo at once what it left behind.

Also here: the page on which people send a run a signal: its value, as a form of its schema.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render

from agents.access import checkpoint_or_404, is_fragment, run_or_404
from agents.errors import RewindRefused
from agents.models import Signal, Wait
from agents.moves import rewind as moving
from agents.moves.cancel import cancel as cancel_run
from agents.pages.edits import edit_context
from agents.pages.forks import fork_context
from agents.pages.run import offered_moves
from agents.pages.run.offered_moves import TypedOrder, order_of
from agents.pages.run.page import show_run_again
from agents.waits import signals, step_waits
from agents.work_errors import RunEnded, SignalConflict, TooManySignals, WorkInvalid
from approvals import forms
from approvals.english import quote_titles
from approvals.policy import step_up
from approvals.presentation.decision_form.actions import blank
from approvals.presentation.decision_form.faults import of_form
from approvals.views.access import private_get, private_post, reader_of
from checkpoints import actors
from checkpoints.access.permissions import START_RUN, say_missing_permission
from checkpoints.models import Run
from checkpoints.postgresql.sql import make_storable
from checkpoints.runs.plans import spec_of

CONTEXTS = {"edit": edit_context, "fork": fork_context}


@private_post
def rewind(request: HttpRequest, run_id: int) -> HttpResponse:
    """Rewind the run to a checkpoint as it is, or to before its step. 409 where it would not do what was shown."""
    order = order_of(request, "rewind")

    def give(run: Run, reader: User) -> None:
        checkpoint_or_404(run, order.at)
        moving.rewind(
            run, to=order.to, by=reader, feedback=order.why, confirm=order.confirm, seen=order.seen, key=order.once,
            confirmed=step_up.of_session(request),
        )  # fmt: skip

    return give_order(request, run_id, give, order)


@private_post
def settle(request: HttpRequest, run_id: int) -> HttpResponse:
    """Undo at once what the run left behind, even if a step ahead could reuse it. 409 if there is nothing to undo."""
    return give_order(request, run_id, lambda run, reader: moving.settle_now(run, by=reader))


@private_post
def wake(request: HttpRequest, run_id: int) -> HttpResponse:
    """End the time that the run waits for now. 409 if it waits for none."""
    return give_order(request, run_id, lambda run, reader: step_waits.wake_now(run, by=actors.of_user(reader)))


def give_order(
    request: HttpRequest, run_id: int, give: Callable[[Run, User], object], order: TypedOrder | None = None
) -> HttpResponse:
    """Give an order and show the run; where it is refused, with the input and why nothing was done."""
    run, reader = offered_moves.run_to_order(request, run_id)
    try:
        give(run, reader)
    except RewindRefused as refusal:
        at, notice = order.at if order else 0, offered_moves.notice(refusal)
        return show_run_again(request, run, reader, notice, status=refusal.status, at=at, order=order)
    return redirect("run", run.pk)


@private_post
def cancel(request: HttpRequest, run_id: int) -> HttpResponse:
    """Cancel the run. 403 for those who may only read; 409 if it has already ended."""
    run, reader = offered_moves.run_to_order(request, run_id)
    if cancel_run(run, by=reader, reason=request.POST.get("reason", "").strip()):
        return redirect("run", run.pk)
    return show_run_again(request, run, reader, {"too_late": True}, status=409)


@private_post
def impact(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the impact of the order in the form, as a part of its page or, without a script, the page."""
    run, reader = offered_moves.run_to_order(request, run_id)
    kind = request.POST.get("kind", "")
    if kind not in ("rewind", *CONTEXTS):
        return _no_such_kind("rewind", *CONTEXTS)
    order = order_of(request, kind)
    if kind in CONTEXTS:
        template = "runs/order/preview_update.html" if is_fragment(request) else f"runs/order/{kind}.html"
        return render(request, template, CONTEXTS[kind](run, order))
    checkpoint = checkpoint_or_404(run, order.at)
    if not is_fragment(request):
        return show_run_again(request, run, reader, {}, status=200, at=order.at, order=order)
    context = {"run": run, "checkpoint": checkpoint} | offered_moves.panel(run, checkpoint, order)
    part = "runs/rewind/panel.html" if "panel" in request.POST else "runs/rewind/preview_update.html"
    return render(request, part, context)


@private_post
def form(request: HttpRequest, run_id: int) -> HttpResponse:
    """Draw the form of a state after a list changed, a branch was chosen or a part opened; the input is kept.

    Only the state's form for a script, else the whole page.
    """
    run, _ = offered_moves.run_to_order(request, run_id)
    kind = request.POST.get("kind", "")
    if kind not in CONTEXTS:
        return _no_such_kind(*CONTEXTS)
    order = order_of(request, kind)
    order = replace(order, texts=forms.applied(order.texts, request.POST.get("change", "")))
    template = "runs/order/state_form.html" if request.headers.get("X-Fragment") else f"runs/order/{kind}.html"
    return render(request, template, CONTEXTS[kind](run, order))


def _no_such_kind(*kinds: str) -> HttpResponse:
    return HttpResponseBadRequest(f"kind has to be one of {', '.join(kinds)}.", content_type="text/plain")


FORM = "value"  # the prefix of the form's names, and the pointer to the value
SHOWN = 20  # signals that were sent before


@private_get
def page(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the form of the signal `?name=`, by default the one that the run waits for."""
    return show(request, run_or_404(request, run_id), request.GET.get("name", ""), {})


@private_post
def send(request: HttpRequest, run_id: int) -> HttpResponse:
    """Send the signal. The same form sent twice is one signal. 403 for those who may not, 409 and 422 if refused."""
    run, reader = run_or_404(request, run_id), reader_of(request)
    if not signals.may_send(run, reader):
        raise PermissionDenied(say_missing_permission(reader, START_RUN, run.team))
    posted = request.POST.dict()
    name, key = make_storable(posted.get("name", "")), make_storable(posted.get("key", "")[:100]) or uuid.uuid4().hex
    if change := posted.get("change", ""):
        return show(request, run, name, forms.applied(posted, change))
    schema = spec_of(run.plan).signals.get(name, {})
    read = form_of(run, schema, posted)
    if read is not None and read.errors:
        return show(request, run, name, posted, errors=read.errors, status=422)
    try:
        signals.send(run, name, None if read is None else read.value, key=f"page-{key}", by=actors.of_user(reader))
    except WorkInvalid as invalid:
        faults = {error["pointer"].removeprefix(f"/{FORM}"): error["message"] for error in invalid.errors}
        return show(request, run, name, posted, errors=faults, status=invalid.status)
    except RunEnded as ended:  # the page says so itself
        return show(request, run, name, posted, status=ended.status)
    except (SignalConflict, TooManySignals) as refusal:
        return show(request, run, name, posted, errors={"": str(refusal.sentence)}, status=refusal.status)
    return redirect("run", run.pk)


def form_of(
    run: Run, schema: Mapping[str, Any], posted: Mapping[str, str], errors: Mapping[str, str] | None = None
) -> forms.Form | None:
    """Return the form of a signal's value; None if it has none."""
    if not schema or schema.get("type") == "null":
        return None
    quoted = run.plan.external
    return forms.build(schema, blank(schema), prefix=FORM, posted=posted, errors=errors or {}, quoted=quoted)


def show(
    request: HttpRequest, run: Run, name: str, posted: Mapping[str, str], *,
    errors: Mapping[str, str] | None = None, status: int = 200,
) -> HttpResponse:  # fmt: skip
    """Show the page."""
    known, waited = spec_of(run.plan).signals, Wait.objects.current(run)
    awaited = waited.name if waited is not None and waited.kind == Wait.Kind.SIGNAL else ""
    chosen = next((word for word in (name, awaited, *sorted(known)) if word in known), "")
    form = form_of(run, known.get(chosen, {}), posted, errors)
    placed = {node.place.pointer for node in form.nodes} if form else set()
    context = {
        "run": run, "names": sorted(known), "chosen": chosen, "awaited": awaited, "form": form,
        "live": run.status in Run.LIVE, "may_send": signals.may_send(run, reader_of(request)),
        "key": posted.get("key") or uuid.uuid4().hex, "faults": list(of_form(form)) if form else [],
        "loose": [message for at, message in (errors or {}).items() if not (at and at in placed)],
        "sent": sent_before(run),
    }  # fmt: skip
    return render(request, "runs/signal.html", context, status=status)


def sent_before(run: Run) -> list[tuple[Signal, str]]:
    """Return the run's newest signals, each with the titles of the steps that read it, on any branch."""
    plan = spec_of(run.plan)
    found = Signal.objects.filter(run=run).prefetch_related("waits").order_by("-pk")[:SHOWN]
    readers = [(signal, dict.fromkeys(wait.step for wait in signal.waits.all())) for signal in found]
    return [(signal, quote_titles(map(plan.title_of, steps))) for signal, steps in readers]
