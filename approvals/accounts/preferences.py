"""A person's choices: kept in their profile, and handed to each browser in cookies, which cost a page no query.

A browser gets them as its person signs in, and as they are saved there. `hp-zone` is the browser's own zone and holds
where the person chose none.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpResponseBase

from approvals.models import Profile
from approvals.time_zones import CHOSEN

THEME, KEYS = "hp-theme", "hp-keys"
LASTS = 365 * 24 * 60 * 60  # seconds


def profile_of(user: User) -> Profile:
    """Return a person's choices; those of somebody who made none are the browser's."""
    return Profile.objects.filter(user=user).first() or Profile(user=user)


def hand_over(response: HttpResponseBase, chosen: Profile) -> None:
    """Set the cookies by which this browser follows the choices."""
    _set(response, CHOSEN, chosen.zone)
    _set(response, THEME, chosen.theme)
    _set(response, KEYS, "" if chosen.hotkeys else "off")


def _set(response: HttpResponseBase, name: str, value: str) -> None:
    """Set a cookie that scripts read too, or delete it."""
    if value:
        values: dict[str, Any] = {"max_age": LASTS, "samesite": "Lax", "secure": settings.SESSION_COOKIE_SECURE}
        response.set_cookie(name, value, **values)
    else:
        response.delete_cookie(name, samesite="Lax")
