"""Changes a gate's form: a list changed, a branch chosen, a part opened. All input is kept, nothing is decided.

A button of the form posts all of it here and gets the gate's page back; with script, the same post gets only the one
action's form, which replaces the old one.
"""

from __future__ import annotations

from dataclasses import replace

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from approvals import forms
from approvals.forms import names
from approvals.presentation.decision_form import posted
from approvals.presentation.decision_form.posted import PostedDecision
from approvals.presentation.gate_page.filled import carry, fill
from approvals.presentation.gate_page.page import GatePage

from .access import gate_post, page_or_404
from .decisions import proposal_of
from .files import form_with_files
from .gates import show

CHANGED = {
    "title": "Not sent.", "said": "This gate changed meanwhile. Your input is kept.",
    "tone": "hold", "icon": "reply",
}  # fmt: skip


@gate_post
def create(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show the changed form: one action's where script asks for it, else the page. 409 where the gate has changed."""
    page = page_or_404(request, gate_id)
    if page.open and page.why_not:
        raise PermissionDenied(page.why_not)
    change = request.POST.get("change", "")
    looked_at = proposal_of(page.proposal, request)
    form = form_with_files(request, page.gate, by=page.user)
    sent = posted.read_over(forms.applied(form, change), looked_at)
    changed(page, sent)
    if looked_at.number != page.proposal.number or not page.open:
        carry(page, sent, looked_at)
        return show(request, page, status=409, refusal=CHANGED)
    prefix = names.split(change)[0]
    if request.headers.get("X-Fragment"):
        for sheet in page.sheets:
            if sheet.form and sheet.prefix == prefix:
                return render(request, "approvals/action/form.html", {"page": page, "sheet": sheet})
        for choice in page.answers:
            if choice.form and choice.prefix == prefix:
                return render(request, "approvals/card/answer_form.html", {"page": page, "choice": choice})
    return show(request, page)


def changed(page: GatePage, sent: PostedDecision) -> None:
    """Put the typed values and choices into the page, without faults for what is still missing."""
    fill(page, replace(sent, each=posted.edits_said(sent)))
    edits = page.card.question is None and bool(sent.typed.arguments or sent.typed.state)
    if edits and sent.chosen != "reject":
        page.verdict = posted.EACH if page.ballots else "edit"
