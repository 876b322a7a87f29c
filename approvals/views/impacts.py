"""What an edit would do, while it is typed: a part of the gate's page, fetched again. Nothing is written."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from approvals import cards, editing
from approvals.errors import DecisionRefused
from approvals.models import Gate
from approvals.presentation import posted
from approvals.presentation.actions import Typed
from approvals.presentation.gate import GatePage
from checkpoints.plans import spec_of

from .access import gate_or_404, private, reader_of, verified


@require_POST
@private
@verified
def create(request: HttpRequest, gate_id: int) -> HttpResponse:
    """The impact of the edit in the form; of what stands, where that is no valid edit yet."""
    page = GatePage(gate=gate_or_404(request, gate_id), user=reader_of(request))
    if page.open and page.why_not:
        raise PermissionDenied
    if page.open:
        page.typed = typed(page, posted.read({**request.POST.dict(), "verdict": "edit"}, page.card).typed)
    return render(request, "approvals/edit_impact.html", {"page": page})


def typed(page: GatePage, said: Typed) -> Typed:
    """What was typed, with the change of the state that it is, where it is a valid one."""
    gate: Gate = page.gate
    step = spec_of(gate.run.plan).step(gate.step)
    with suppress(DecisionRefused):
        edit = editing.edited(
            page.card,
            plan=gate.run.plan,
            step=gate.step,
            saved=page.snapshot.state,
            standing=page.proposal.state_patch,
            arguments=dict(said.arguments),
            offered=cards.editable(step),
        )
        return replace(said, patch=edit.patch)
    return said
