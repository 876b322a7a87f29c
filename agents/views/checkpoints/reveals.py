"""Revealing a secret of a checkpoint's state."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from agents.queries.access import private, reader_of, run_or_404
from agents.queries.checkpoint import checkpoint_or_404
from approvals.gates import reveal_secret
from approvals.views.reveals import refused, shown
from checkpoints.errors import NotVerified


@require_POST
@private
def create(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Show the secret at the place `at`; the audit records it. 409 where the state does not verify."""
    run, at = run_or_404(request, run_id), request.POST.get("at", "")
    checkpoint = checkpoint_or_404(run, seq)
    try:
        value = reveal_secret.of_checkpoint(run, checkpoint, at, by=reader_of(request))
    except reveal_secret.NotRevealed as refusal:
        return refused(request, refusal)
    except NotVerified as unverified:
        context = {"run": run, "checkpoint": checkpoint, "pointer": at, "first": 0, "refused": unverified}
        return render(request, "runs/checkpoint/value.html", context, status=409)
    back = f"{reverse('checkpoint', args=[run.pk, seq])}?view=state#secrets"
    of = f"R-{run.pk}, checkpoint {seq}"
    return shown(request, at, value, back=back, of=of)
