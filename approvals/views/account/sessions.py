"""Lists where a person is signed in, and ends one session or all others."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from approvals.accounts import factors, sign_ins
from approvals.sessions import digest_of_key
from approvals.views.access import private, reader_of
from checkpoints import actors


@require_safe
@private
def page(request: HttpRequest) -> HttpResponse:
    """List the reader's sessions, the one used last first."""
    here = digest_of_key(request.session.session_key or "")
    rows = [
        {
            "row": row, "browser": sign_ins.name_browser(row.browser), "by": factors.in_words(row.method),
            "here": row.session_key == here,
        }
        for row in sign_ins.open_sessions(reader_of(request))
    ]  # fmt: skip
    rows.sort(key=lambda each: not each["here"])
    return render(request, "account_pages/sessions.html", {"section": "sessions", "rows": rows})


@require_POST
@private
def end(request: HttpRequest, number: int) -> HttpResponse:
    """End one of the reader's sessions."""
    reader = reader_of(request)
    if not sign_ins.end(reader, number, by=actors.of_user(reader)):
        raise Http404("No such session")
    return redirect("account-sessions")


@require_POST
@private
def end_others(request: HttpRequest) -> HttpResponse:
    """End all of the reader's sessions but this one."""
    reader = reader_of(request)
    sign_ins.end_all(reader, by=actors.of_user(reader), but=request.session)
    return redirect("account-sessions")
