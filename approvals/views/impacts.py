"""Previews each choice, with the typed values and the approvals so far: parts of the gate's page. Writes nothing.

They are fetched while an edit is typed, and whenever something happens at the gate, so that nobody presses a button by
an outdated preview. An edit may change single fields, or replace whole values; both are previewed.
"""

from __future__ import annotations

from dataclasses import replace

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from approvals.decisions import edit_state, prepared_decision
from approvals.errors import DecisionRefused, Rejected
from approvals.presentation.decision_form import posted, typed_edits, verdict_choice
from approvals.presentation.decision_form.actions import TypedDecision
from approvals.presentation.gate_page.filled import blamed, fill
from approvals.presentation.gate_page.page import GatePage

from .access import gate_post, page_or_404
from .files import form_with_files
from .gates import show


@gate_post
def create(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show the impacts of the form; of the current proposal where the form is no valid edit or decision yet.

    A part of the page for htmx, which merges it; the whole page, filled in, for a browser without scripts.
    """
    page = page_or_404(request, gate_id)
    if page.open and page.why_not:
        raise PermissionDenied(page.why_not)
    live = bool(request.headers.get("HX-Request"))
    if live and not (page.may_send and request.POST.get("proposal") == str(page.gate.proposal)):
        return HttpResponse()  # the page learns from its status part that the gate closed or changed
    if page.open:
        form = form_with_files(request, page.gate, by=page.user)
        page.typed_at = form.get("typed", "") if live else ""
        fill_in(page, typed_edits.without_edits(form) if form.get(posted.INSTEAD) == posted.RESTORE else form)
    if live:
        return render(request, "approvals/impact/live_update.html", {"page": page, "live": True})
    return show(request, page)


def fill_in(page: GatePage, form: dict[str, str]) -> None:
    """Put a form's values into the page, with the impact of each choice."""
    sent = posted.read(form, page.card, page.standing_state, page.veil)
    fill(page, replace(sent, each=verdict_choice.chosen_in(form, page.card)))
    said = posted.read({**form, "verdict": "edit"}, page.card, page.standing_state, page.veil).typed
    page.typed = blamed(page, typed(page, said))
    put = posted.read({**form, "verdict": "reject", "then": "override"}, page.card)
    page.instead = typed(page, replace(put.typed, arguments=put.decision.get("arguments", {})))


def typed(page: GatePage, said: TypedDecision) -> TypedDecision:
    """Return the typed values with the patch and card of that edit, or with its faults."""
    unread = [each for each in said.errors if each["action"] or each["part"] == edit_state.PART]
    if not said.arguments and (said.state is None or page.standing_state is None):
        return replace(said, errors=unread)
    try:
        edit = prepared_decision.edited(page.gate, page.proposal, arguments=said.arguments, state=said.state)
    except DecisionRefused as refusal:
        wrong = refusal.errors if isinstance(refusal, Rejected) else []
        told = {(each["action"], each["pointer"]) for each in unread}
        return replace(said, errors=unread + [e for e in wrong if (e["action"], e["pointer"]) not in told])
    return replace(said, patch=edit.patch, card=edit.card, errors=unread)
