"""What the frame around every page shows: where one can go, how many gates wait, where the live feed starts."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.urls import reverse

from approvals.models import Gate
from checkpoints.counting import capped

PAGES = (("inbox", "Inbox", "inbox"), ("runs", "Runs", "runs"))
ADMIN = ("admin:index", "Admin", "tool")


def frame(request: HttpRequest) -> dict[str, Any]:
    """What base.html shows around a page; nothing for somebody who has not signed in."""
    user = getattr(request, "user", AnonymousUser())
    if not isinstance(user, User):
        return {}
    return {
        "cursor": str(getattr(request, "drawn_at", "")),
        "open": capped(Gate.objects.decidable_by(user)),
        "teams": list(user.groups.order_by("name").values_list("name", flat=True)),
        "pages": pages(request, user),
    }


def pages(request: HttpRequest, user: User) -> list[dict[str, Any]]:
    """The pages that this person may open."""
    shown = PAGES + ((ADMIN,) if user.is_staff else ())
    return [
        {"name": name, "label": label, "icon": icon, "url": reverse(name), "current": here(request, name)}
        for name, label, icon in shown
    ]


def here(request: HttpRequest, name: str) -> bool:
    """Whether the request is for the page `name` or a page below it."""
    below = {"inbox": ("inbox", "gate"), "runs": ("run", "checkpoint")}
    match = request.resolver_match
    return bool(match and match.url_name and match.url_name.startswith(below.get(name, (name,))))
