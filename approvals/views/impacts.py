"""What an edit would do, while it is typed: a part of the gate's page, fetched again. Nothing is written.

An edit is typed field by field, or whole values are put in the place of what was proposed; both are looked at.
"""

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
    """The impacts of the edits in the form; of what stands, where one is no valid edit yet."""
    page = GatePage(gate=gate_or_404(request, gate_id), user=reader_of(request))
    if page.open and page.why_not:
        raise PermissionDenied
    if page.open:
        form = request.POST.dict()
        page.typed = typed(page, posted.read({**form, "verdict": "edit"}, page.card).typed)
        put = posted.read({**form, "verdict": "reject", "then": "override"}, page.card)
        page.instead = typed(page, replace(put.typed, arguments=put.decision.get("arguments", {})))
    return render(request, "approvals/typed.html", {"page": page})


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
