"""The list of runs."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.presentation import head
from agents.presentation.facts import Asked, Standing
from approvals.models import Gate
from checkpoints.models import Run

from .access import is_fragment, private, reader_of
from .story import frozen_of, starter

PAGE = 50


@require_safe
@private
def page(request: HttpRequest) -> HttpResponse:
    """The runs of the reader's teams, newest first; `?status=` filters, `?before=` names the run to go on below."""
    context = listing(reader_of(request), request.GET.get("status", ""), request.GET.get("before", ""))
    return render(request, "runs/_list.html" if is_fragment(request) else "runs/list.html", context)


def listing(reader: User, status: str, before: str) -> dict[str, Any]:
    """For runs/_list.html."""
    visible = Run.objects.visible_to(reader)
    runs = visible.select_related("plan", "team", "started_by").order_by("-id")
    status = status if status in Run.Status.values else ""
    if status:
        runs = runs.filter(status=status)
    below = int(before) if before.isascii() and before.isdigit() and len(before) < 18 else 0
    if below:
        runs = runs.filter(pk__lt=below)
    open_gates = Prefetch("gates", Gate.objects.filter(status=Gate.Status.OPEN), to_attr="open_gates")
    found = list(runs.prefetch_related(open_gates)[: PAGE + 1])
    rows = [row_of(run) for run in found[:PAGE]]
    return {
        "rows": rows,
        "status": status,
        "statuses": [("", "All")] + [(choice.value, str(choice.label)) for choice in Run.Status],
        "below": below,
        "next": found[PAGE - 1].pk if len(found) > PAGE else 0,
        "any": bool(rows) or visible.exists(),
        "teams": sorted({run.team.name for run in found}),
    }


def row_of(run: Run) -> dict[str, Any]:
    """One row: the run, its status word, and what it waits for."""
    gates: list[Gate] = getattr(run, "open_gates", [])
    gate = gates[0] if gates else None
    asked = gate and Asked(gate.pk, "", gate.step, gate.kind, gate.status, gate.title, gate.opened_at)
    standing = Standing(
        run.status,
        "",
        run.next_step,
        attempts=run.attempts,
        wake_at=run.wake_at,
        reason=run.reason,
        frozen=frozen_of(run),
        ending=run.ending,
    )
    return {"run": run, "gate": gate, "status": head.status(standing, asked or None), "starter": starter(run)}
