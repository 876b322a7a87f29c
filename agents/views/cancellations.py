"""Cancelling a run."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from approvals.models import Gate
from checkpoints import actors
from checkpoints.actors import Actor
from checkpoints.models import Run
from checkpoints.permissions import may

from .access import private, reader_of, run_or_404
from .inspector import inspector_context
from .runs import context_of
from .sheets import Picked


@require_POST
@private
def create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Cancel the run. 403 for those who may only look; 409 where it has ended already."""
    run = run_or_404(request, run_id)
    reader = reader_of(request)
    if not may(reader, run.team_id, "checkpoints.rewind_run"):
        raise PermissionDenied
    if cancelled(run, by=reader, reason=request.POST.get("reason", "").strip()):
        return redirect("run", run.pk)
    run.refresh_from_db()
    context = context_of(run, reader, Picked()) | inspector_context(run, Picked()) | {"too_late": True}
    return render(request, "runs/run.html", context, status=409)


class _GateOpened(Exception):
    """The run asked something between the look for its gates and its end: begin again."""


def cancelled(run: Run, *, by: User, reason: str) -> bool:
    """End the run and withdraw what it still asks, in one transaction; False where it had ended before."""
    while True:
        try:
            with transaction.atomic(durable=True):
                return _cancelled(run, by=actors.of_user(by), reason=reason)
        except _GateOpened:
            continue


def _cancelled(run: Run, *, by: Actor, reason: str) -> bool:
    """Gates are locked before their run, as a decision does it: the other way round the two would wait for each other.

    The run ends before they are withdrawn: a gate that closes wakes its run, and only a run that waits can be woken.
    """
    asking = Gate.objects.open().filter(run=run)
    gates = {gate.pk: gate for gate in asking.select_for_update().order_by("pk")}
    if not run.cancel(by=by, reason=reason):
        return False
    if asking.exclude(pk__in=gates).exists():
        raise _GateOpened
    for gate in gates.values():
        gate.withdraw(by=by, reason="The run was cancelled.")
    return True
