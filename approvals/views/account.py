"""Shows a person's profile and where they are signed in; saves their name and choices, and ends sessions."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from approvals.accounts import factors, preferences, sign_ins
from approvals.models import Profile
from approvals.notifications import account
from approvals.presentation import names as person_names
from approvals.sessions import digest_of_key
from approvals.time_zones import known_zones
from checkpoints import actors
from checkpoints.access.permissions import own_teams
from checkpoints.events import event_log

from .access import private_get, private_post, reader_of


@private_get
def profile(request: HttpRequest) -> HttpResponse:
    """Show the reader's profile."""
    return _show(request, preferences.profile_of(reader_of(request)))


@private_post
def save_profile(request: HttpRequest) -> HttpResponse:
    """Save the profile, and have this browser follow it at once; 422 with the input where a name is refused."""
    reader, form = reader_of(request), request.POST
    chosen = preferences.profile_of(reader)
    before = chosen.zone
    chosen.zone = zone if (zone := form.get("zone", "")) in known_zones() else ""
    chosen.theme = theme if (theme := form.get("theme", "")) in Profile.Theme.values else ""
    chosen.hotkeys = form.get("hotkeys") == "on"
    names = {name: person_names.normal_form(form.get(name, "")) for name in ("first_name", "last_name")}
    with transaction.atomic():
        if wrong := person_names.fault(reader, **names):
            return _show(request, chosen, typed=names, wrong=wrong, status=422)
        chosen.save()
        if chosen.zone != before:
            account.replan(reader)
        changed = [name for name, value in names.items() if getattr(reader, name) != value]
        if changed:
            User.objects.filter(pk=reader.pk).update(**{name: names[name] for name in changed})
            data: dict[str, Any] = {"fields": changed, "joined": [], "left": [], "granted": [], "revoked": []}
            event_log.record("user.changed", subject=f"user:{reader.pk}", by=actors.of_user(reader), data=data)
    response = redirect("account")
    preferences.hand_over(response, chosen)
    return response


def _show(
    request: HttpRequest, chosen: Profile, *, typed: dict[str, str] | None = None, wrong: str = "", status: int = 200
) -> HttpResponse:
    reader = reader_of(request)
    context = {
        "section": "profile", "chosen": chosen, "wrong": wrong, "themes": Profile.Theme.choices,
        "typed": typed or {"first_name": reader.first_name, "last_name": reader.last_name},
        "zones": sorted(
            name for name in known_zones() if "/" in name and not name.startswith(("Etc/", "posix/", "right/"))
        ),
        "teams": list(own_teams(reader).order_by("name")),
    }  # fmt: skip
    return render(request, "account_pages/profile.html", context, status=status)


@private_get
def sessions(request: HttpRequest) -> HttpResponse:
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


@private_post
def end_session(request: HttpRequest, number: int) -> HttpResponse:
    """End one of the reader's sessions."""
    reader = reader_of(request)
    if not sign_ins.end(reader, number, by=actors.of_user(reader)):
        raise Http404("No such session")
    return redirect("account-sessions")


@private_post
def end_other_sessions(request: HttpRequest) -> HttpResponse:
    """End all of the reader's sessions but this one."""
    reader = reader_of(request)
    sign_ins.end_all(reader, by=actors.of_user(reader), but=request.session)
    return redirect("account-sessions")
