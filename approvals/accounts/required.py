"""HOLDPOINT_MFA_REQUIRED: who must have signed in with a second factor.

A session says by which methods its person signed in. One that lacks a second factor opens no page but those on which
to add one, for people of whom it is required; it hears nothing on the live socket, and the API refuses it. A token has
no session: the API refuses a person's own where that person has no second factor at all. An agent's decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase, HttpResponseForbidden
from django.shortcuts import redirect, render

from approvals.middleware import PROBED, Respond
from approvals.models import Delegation, Gate, Policy
from checkpoints.access.permissions import DECIDE_GATE, teams_where

from . import factors
from .factors import SECOND_FACTORS, of_records

NOBODY, STAFF, DECIDERS, EVERYBODY = CHOICES = ("", "staff", "deciders", "everybody")
# Where somebody without a second factor may go: to add one, to sign in or out, and to what draws those pages.
OPEN = ("/account/security/", "/accounts/", "/static/", *PROBED)
TRUSTED = "hp-provider-factors"  # in the session: its provider vouches for a second factor


def middleware(get_response: Respond) -> Respond:
    """Lead people who lack a second factor that they need to the page on which to add one."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        if not settings.HOLDPOINT_MFA_REQUIRED or request.path_info.startswith(OPEN) or not lacks(request):
            return get_response(request)
        if request.path_info.startswith(("/api/", "/mcp")):
            return HttpResponseForbidden("This account needs a second factor: add one on its security page.")
        if request.headers.get("HX-Request") == "true" or request.method != "GET":
            return render(request, "account_pages/needed.html", status=403)
        return redirect("mfa_index")

    return respond


def lacks(request: HttpRequest) -> bool:
    """Tell whether the request's session is of somebody who must have a second factor and signed in without."""
    session, user = getattr(request, "session", None), getattr(request, "user", None)
    if session is None or not isinstance(user, User) or met(session):
        return False
    return of_whom(user)


def met(session: Mapping[str, Any]) -> bool:
    """Tell whether a session's person proved a second factor in it."""
    records = session.get(AUTHENTICATION_METHODS_SESSION_KEY)
    proved = of_records(records) if isinstance(records, list) else []
    return session.get(TRUSTED) is True or any(method in SECOND_FACTORS for method in proved)


def of_whom(user: User) -> bool:
    """Tell whether a second factor is required of this person."""
    wanted = settings.HOLDPOINT_MFA_REQUIRED
    if wanted == EVERYBODY or (wanted and (user.is_staff or user.is_superuser)):
        return True
    return wanted == DECIDERS and _decides(user)


def has_none(user: User) -> bool:
    """Tell whether this person must have a second factor and has none at all, so that their own tokens open nothing.

    What is required goes by all that they may do, not by the bounds of the token with which they ask.
    """
    if not settings.HOLDPOINT_MFA_REQUIRED or factors.has_any(user) or not of_whom(User.objects.get(pk=user.pk)):
        return False
    return not SocialAccount.objects.filter(user=user.pk, provider__in=vouching()).exists()


def vouching() -> list[str]:
    """List the providers whose word counts as a second factor."""
    return [provider.name for provider in settings.HOLDPOINT_OIDC.values() if provider.vouches]


def _decides(user: User) -> bool:
    """Tell whether this person may decide gates: in a team, as one whom a policy names, or for somebody who is away.

    A gate keeps the version of its policy that it was opened under.
    """
    named = Policy.objects.decided_by(user)
    asks = Q(pk__in=Policy.objects.current().values("pk")) | Q(gates__status=Gate.Status.OPEN)
    return (
        teams_where(user, DECIDE_GATE).exists()
        or named.filter(asks).exists()
        or Delegation.objects.now().filter(delegate=user.pk).exists()
    )
