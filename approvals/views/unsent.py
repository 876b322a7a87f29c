"""Serves a gate's form before it is sent. Nothing is decided here.

The files of a posted form are kept at once, so that the form goes on with their references as text.

A button of the form (a list changed, a branch chosen, a part opened) posts all of it and gets the gate's page back;
with script, the same post gets only the one action's form, which replaces the old one.

Impacts are fetched while an edit is typed, and whenever something happens at the gate, so that nobody presses a button
by an outdated preview. An edit may change single fields, or replace whole values; both are previewed.

Drafts are kept on the server, so that no reload and no sign-out loses them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse

from approvals import forms
from approvals.decisions import edit_state, prepared_decision
from approvals.errors import DecisionRefused, QuotaReached, Rejected
from approvals.forms import names, texts
from approvals.models import Draft, Gate, Proposal, Upload
from approvals.models.draft import MOST_CHARACTERS, NotKept
from approvals.policy import authority
from approvals.presentation.decision_form import posted, typed_edits, verdict_choice
from approvals.presentation.decision_form.actions import TypedDecision
from approvals.presentation.gate_page.filled import blamed, blank, carry, fill, pick_fields
from approvals.presentation.gate_page.page import GatePage
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.postgresql.sql import make_storable

from .access import gate_post, number_in, page_or_404, reader_of, shown_or_404
from .gates import show

CHANGED = {
    "title": "Not sent.", "said": "This gate changed meanwhile. Your input is kept.",
    "tone": "hold", "icon": "reply",
}  # fmt: skip
LONGEST_KEY = 80  # characters of a form's key


def form_with_files(request: HttpRequest, gate: Gate, *, by: User) -> dict[str, str]:
    """Return the posted form with the reference of each file that came with it, under the name of its field.

    No file is kept from somebody who may not decide this gate. A file that is too large, or one too many, leaves the
    field as it was; the reason goes under the name of the file's input, which no browser posts as text.
    """
    form = {name: text for name, text in request.POST.dict().items() if not names.is_file(name)}
    sent = [(name, file) for name in request.FILES if names.is_file(name) and (file := request.FILES.get(name))]
    if not sent or gate.status != Gate.Status.OPEN or authority.why_not(by, gate):
        return form
    for name, file in sent:
        prefix, _, path = names.split(name)
        if (file.size or 0) > settings.HOLDPOINT_UPLOAD_LIMIT:
            size, most = filesizeformat(file.size or 0), filesizeformat(settings.HOLDPOINT_UPLOAD_LIMIT)
            form[name] = f"This file has {size}; choose one of at most {most}."
        else:
            try:
                form[prefix + path] = texts.written("file", Upload.objects.keep(gate, file, by=by))
            except QuotaReached as reached:
                form[name] = str(reached)
    return form


def proposal_of(current: Proposal, request: HttpRequest) -> Proposal:
    """Return the proposal that was on the reader's screen; the current one if the form names no other of its gate."""
    number = number_in(request.POST.get("proposal", ""), 8)
    found = _numbered(current.gate_id, number) if number not in (None, current.number) else []
    if not found:
        return current
    found[0].gate = current.gate
    return found[0]


@prepared_statement
def _numbered(gate: Any, number: Any) -> QuerySet[Proposal]:
    return Proposal.objects.filter(gate=gate, number=number).select_related("by")


@gate_post
def change_form(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show the changed form: one action's where script asks for it, else the page. 409 where the gate has changed."""
    page = page_or_404(request, gate_id)
    if page.open and page.why_not:
        raise PermissionDenied(page.why_not)
    change = request.POST.get("change", "")
    looked_at = proposal_of(page.proposal, request)
    form = form_with_files(request, page.gate, by=page.user)
    sent = posted.read_over(forms.applied(form, change), looked_at)
    # Without faults for what is still missing.
    fill(page, replace(sent, each=posted.edits_said(sent)))
    if page.card.question is None and (sent.typed.arguments or sent.typed.state) and sent.chosen != "reject":
        page.verdict = posted.EACH if page.ballots else "edit"
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


@gate_post
def preview_impacts(request: HttpRequest, gate_id: int) -> HttpResponse:
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
    page.typed = blamed(page, preview_edit(page, said))
    put = posted.read({**form, "verdict": "reject", "then": "override"}, page.card)
    page.instead = preview_edit(page, replace(put.typed, arguments=put.decision.get("arguments", {})))


def preview_edit(page: GatePage, said: TypedDecision) -> TypedDecision:
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


@gate_post
def keep_draft(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Keep the posted form as the reader's draft of this gate; with `discard`, delete the draft.

    A script gets the time as JSON; a page without script comes back to the gate.
    """
    shown, user = shown_or_404(request, gate_id), reader_of(request)
    gate = shown.gate
    if "discard" in request.POST:
        Draft.objects.drop(gate, by=user)
        return HttpResponseRedirect(reverse("gate", args=[gate_id]), status=303)
    reason = authority.why_not(user, gate)
    if reason:
        return _told(request, gate_id, {"problem": reason}, status=403)
    looked_at = proposal_of(shown.standing, request)
    fields = pick_fields(form_with_files(request, gate, by=user), looked_at)
    if sum(map(len, fields.values())) > MOST_CHARACTERS:
        return _told(request, gate_id, {"problem": "This is too long to be kept as a draft."}, status=413)
    if blank(fields, looked_at):
        fields = {}  # kept all the same, so that a late request of an earlier page cannot replace it
    key = make_storable(request.POST.get("key", "")[:LONGEST_KEY])
    # A page without script cannot show that its draft was refused, so the last one typed is kept.
    seen = None if request.accepts("text/html") else request.POST.get("draft_seen")
    try:
        kept_at = Draft.objects.keep(gate, by=user, proposal=looked_at.number, fields=fields, key=key, seen=seen)
    except NotKept as why:
        return _told(request, gate_id, {"problem": str(why)}, status=409)
    return _told(request, gate_id, {"kept_at": kept_at.isoformat(), "empty": not fields})


def _told(request: HttpRequest, gate_id: int, said: dict[str, Any], *, status: int = 200) -> HttpResponse:
    if request.accepts("text/html") and status != 403:
        return HttpResponseRedirect(reverse("gate", args=[gate_id]), status=303)
    return JsonResponse(said, status=status)
