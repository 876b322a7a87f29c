"""Prepares the frame around every page: the links, the number of waiting gates, and the start of the live feed."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from approvals.gates.lists.queues import ReaderReach
from approvals.live import page_frame

from .addresses import address

PAGES = (
    ("inbox", "Inbox", "inbox"),
    ("runs", "Runs", "runs"),
    ("agents", "Agents", "agents"),
    ("insights", "Insights", "chart"),
)
AUDIT = ("audit", "Audit", "audit")
NAMED = 6  # teams
ADMIN = ("admin:index", "Admin", "tool")


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return the context of base.html's frame; {} for somebody who has not signed in."""
    found = page_frame.of(request)
    if found is None or not isinstance(request.user, User):
        return {}
    return {
        "cursor": str(found.cursor),
        "open": getattr(request, "waiting", found.waiting),
        "teams": teams(found.reach),
        "pages": pages(request, request.user),
    }


def teams(reach: ReaderReach) -> list[str]:
    """List the teams whose runs the reader sees, by name; only the first NAMED."""
    names = list(reach.teams.values())
    more = len(names) - NAMED
    if more <= 0:
        return names
    return [*names[:NAMED], f"{more} more"]


def pages(request: HttpRequest, user: User) -> list[dict[str, Any]]:
    """List the pages that this person may open."""
    found = page_frame.of(request)
    shown = PAGES + ((AUDIT,) if found and found.sees_audit else ()) + ((ADMIN,) if user.is_staff else ())
    return [
        {"name": name, "label": label, "icon": icon, "url": address(name), "current": here(request, name)}
        for name, label, icon in shown
    ]


def here(request: HttpRequest, name: str) -> bool:
    """Tell whether the request is for the page `name` or a page below it."""
    below = {
        "inbox": ("inbox", "gate", "bulk", "views"),
        "runs": ("run", "checkpoint"),
        "agents": ("agent",),
        "insights": ("insight",),
    }
    match = request.resolver_match
    return bool(match and match.url_name and match.url_name.startswith(below.get(name, (name,))))
