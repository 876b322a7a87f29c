"""Prepares the frame around every page: the links, the number of waiting gates, and the start of the live feed.

Also here: addresses of pages. Django takes a hundred calls of functions to put a number into a pattern.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import get_script_prefix, get_urlconf, reverse

from approvals.live import page_frame


def address(name: str, *args: object) -> str:
    """Return a page's address as Django's own tag does."""
    return _address(get_script_prefix(), get_urlconf(), name, *args)


@lru_cache(4096, typed=True)
def _address(prefix: str, urlconf: str | None, name: str, *args: object) -> str:
    return reverse(name, args=args)


PAGES = (  # name, label, icon, how the names of the pages below it begin
    ("inbox", "Inbox", "inbox", ("inbox", "gate", "bulk", "views")),
    ("runs", "Runs", "runs", ("run", "checkpoint")),
    ("agents", "Agents", "agents", ("agent",)),
    ("insights", "Insights", "chart", ("insight",)),
)
AUDIT = ("audit", "Audit", "audit", ("audit",))
NAMED = 6  # teams whose runs the reader sees
ADMIN = ("admin:index", "Admin", "tool", ("admin:index",))


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return the context of base.html's frame; {} for somebody who has not signed in."""
    found = page_frame.of(request)
    if found is None or not isinstance(request.user, User):
        return {}
    names = list(found.reach.teams.values())
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    return {
        "cursor": str(found.cursor),
        "open": getattr(request, "waiting", found.waiting),
        "teams": [*names[:NAMED], *more],
        "pages": pages(request, request.user),
    }


def pages(request: HttpRequest, user: User) -> list[dict[str, Any]]:
    """List the pages that this person may open."""
    found = page_frame.of(request)
    shown = [*PAGES, *([AUDIT] if found and found.sees_audit else []), *([ADMIN] if user.is_staff else [])]
    here = (request.resolver_match and request.resolver_match.url_name) or ""
    return [
        {"name": name, "label": label, "icon": icon, "url": address(name), "current": here.startswith(below)}
        for name, label, icon, below in shown
    ]
