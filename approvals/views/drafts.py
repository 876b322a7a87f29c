"""Keeps drafts of reviewers' forms on the server, so that no reload and no sign-out loses them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse

from approvals.models import Draft
from approvals.models.draft import MOST_CHARACTERS, NotKept
from approvals.policy import authority
from approvals.presentation.decision_form.draft_fields import kept
from approvals.presentation.gate_page.filled import blank
from checkpoints.postgresql.sql import make_storable

from .access import gate_post, reader_of, shown_or_404
from .decisions import proposal_of
from .files import form_with_files

LONGEST_KEY = 80  # characters of a form's key


@gate_post
def create(request: HttpRequest, gate_id: int) -> HttpResponse:
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
    fields = kept(form_with_files(request, gate, by=user), looked_at)
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
