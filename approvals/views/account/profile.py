"""Shows a person's profile, and saves their name and their choices."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, Value
from django.db.models.functions import Concat, Trim
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from approvals.accounts import preferences
from approvals.models import Profile
from approvals.notifications import changing
from approvals.presentation.text import invisible, lookalikes
from approvals.time_zones import known
from approvals.views.access import private, reader_of
from checkpoints import actors
from checkpoints.access.permissions import own_teams
from checkpoints.events import event_log

LONGEST = 150  # characters of a name, as Django's columns hold


@require_safe
@private
def page(request: HttpRequest) -> HttpResponse:
    """Show the reader's profile."""
    return _show(request, preferences.of(reader_of(request)))


@require_POST
@private
def save(request: HttpRequest) -> HttpResponse:
    """Save the profile, and have this browser follow it at once; 422 with the input where a name is refused."""
    reader, form = reader_of(request), request.POST
    chosen = preferences.of(reader)
    before = chosen.zone
    chosen.zone = zone if (zone := form.get("zone", "")) in known() else ""
    chosen.theme = theme if (theme := form.get("theme", "")) in Profile.Theme.values else ""
    chosen.hotkeys = form.get("hotkeys") == "on"
    names = {name: " ".join(form.get(name, "").split()) for name in ("first_name", "last_name")}
    wrong = name_fault(reader, **names)
    if wrong:
        return _show(request, chosen, typed=names, wrong=wrong, status=422)
    with transaction.atomic():
        chosen.save()
        if chosen.zone != before:
            changing.replan(reader)
        changed = [name for name, value in names.items() if getattr(reader, name) != value]
        if changed:
            User.objects.filter(pk=reader.pk).update(**{name: names[name] for name in changed})
            data: dict[str, Any] = {"fields": changed, "joined": [], "left": [], "granted": [], "revoked": []}
            event_log.record("user.changed", subject=f"user:{reader.pk}", by=actors.of_user(reader), data=data)
    response = redirect("account")
    preferences.hand_over(response, chosen)
    return response


def name_fault(user: User, *, first_name: str, last_name: str) -> str:
    """Say what is wrong with a name that somebody gives themselves; "" for nothing.

    Others decide by the names they read, so nobody takes a colleague's, or one that reads like it.
    """
    whole = f"{first_name} {last_name}".strip()
    if not whole or max(len(first_name), len(last_name)) > LONGEST:
        return _("Write your name, at most %(most)s characters each.") % {"most": LONGEST}
    if "\0" in whole or any(piece.note for piece in invisible.visible(whole)) or lookalikes.in_word(whole):
        return _("This name has characters that are invisible or look like others. Write it in plain letters.")
    changed = (first_name, last_name) != (user.first_name, user.last_name)
    others = User.objects.exclude(pk=user.pk).alias(whole=Trim(Concat("first_name", Value(" "), "last_name")))
    if changed and others.filter(Q(username__iexact=whole) | Q(whole__iexact=whole)).exists():
        return _("Somebody else has this name. Add to yours what tells you apart.")
    return ""


def _show(
    request: HttpRequest, chosen: Profile, *, typed: dict[str, str] | None = None, wrong: str = "", status: int = 200
) -> HttpResponse:
    reader = reader_of(request)
    context = {
        "section": "profile", "chosen": chosen, "wrong": wrong, "themes": Profile.Theme.choices,
        "typed": typed or {"first_name": reader.first_name, "last_name": reader.last_name},
        "zones": sorted(name for name in known() if "/" in name and not name.startswith(("Etc/", "posix/", "right/"))),
        "teams": list(own_teams(reader).order_by("name")),
    }  # fmt: skip
    return render(request, "account_pages/profile.html", context, status=status)
