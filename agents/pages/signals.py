"""The page on which people send a run a signal: its value, as a form of its schema."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from agents.access import private, reader_of, run_or_404
from agents.models import Signal, Wait
from agents.waits import signals
from agents.work_errors import RunEnded, SignalConflict, TooManySignals, WorkInvalid
from approvals import forms
from approvals.english import quote_titles
from approvals.presentation.decision_form.answer_forms import blank
from approvals.presentation.decision_form.faults import of_form
from checkpoints import actors
from checkpoints.access.missing_permission import say_missing_permission
from checkpoints.access.permissions import START_RUN
from checkpoints.models import Run
from checkpoints.postgresql.sql import make_storable
from checkpoints.runs.plans import spec_of

FORM = "value"  # the prefix of the form's names, and the pointer to the value
SHOWN = 20  # signals that were sent before


@require_safe
@private
def page(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the form of the signal `?name=`, by default the one that the run waits for."""
    return show(request, run_or_404(request, run_id), request.GET.get("name", ""), {})


@require_POST
@private
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
