"""Adapts allauth: people sign in, sign out and change their password; only an administrator creates accounts.

Wrong passwords are counted by address, and by account and address together: counted by account alone, anybody anywhere
could lock somebody out. An account that is guessed from very many addresses is locked all the same. A browser in which
its owner has signed in has a signed cookie and is counted by itself, whatever others try (OWASP's device cookies).
"""

from __future__ import annotations

import secrets
from typing import Any, NoReturn

from allauth.account import views
from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from allauth.core.internal import ratelimit
from django.conf import settings
from django.contrib.auth.models import User
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme

from .attempts import confirmation_failed

DEVICE, DEVICE_LASTS = "hp-device", 90 * 24 * 60 * 60  # the cookie, and seconds
# Wrong passwords: of one account from one place, of all accounts from one address, of one account from all of them.
WRONG, WRONG_THERE, WRONG_ANYWHERE = "5/5m/key", "10/m/key", "100/h/key"


class Adapter(DefaultAccountAdapter):
    """Closes sign-up and counts wrong passwords."""

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Refuse another guess after too many; an attempt with the right password is not counted."""
        name = str(credentials.get("username", "")).lower()
        device, address = device_of(request, name), ratelimit.get_ip(request)
        self._login_failed_rl_usage = ratelimit.RateLimitUsage([])
        self._count(request, WRONG, f"{name}:{device or address}")
        if not device:
            self._count(request, WRONG_THERE, f"from {address}")
            self._count(request, WRONG_ANYWHERE, f"of {name}")

    def _count(self, request: HttpRequest, rate: str, key: str) -> None:
        action = "login_failed"
        used = ratelimit.consume(request, app="allauth.account", action=action, config={action: rate}, key=key)
        if used is None:
            raise self.validation_error("too_many_login_attempts")
        self._login_failed_rl_usage.usage += used.usage

    def post_login(self, request: HttpRequest, user: User, **more: Any) -> HttpResponse:
        """Set the cookie that marks the browser as one in which this person has signed in."""
        response: HttpResponse = super().post_login(request, user, **more)
        name = user.get_username().lower()
        device = device_of(request, name) or f"{name}:{secrets.token_hex(16)}"
        response.set_signed_cookie(
            DEVICE, device, salt=DEVICE, max_age=DEVICE_LASTS, path="/accounts/", httponly=True, samesite="Lax",
            secure=settings.SESSION_COOKIE_SECURE,
        )  # fmt: skip
        return response

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return False: nobody creates an account of their own."""
        return False

    def is_safe_url(self, url: str) -> bool:
        """Tell whether a redirect stays within this very origin: another port of the host is another site."""
        request = context.request
        return url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure())


def device_of(request: HttpRequest, name: str) -> str:
    """Return the id of this person's browser from its cookie; "" where they have not signed in there."""
    said = str(request.get_signed_cookie(DEVICE, default="", salt=DEVICE, max_age=DEVICE_LASTS))
    return said if said.rpartition(":")[0] == name else ""


class Reauthenticate(views.ReauthenticateView):
    """Asks a signed-in person for their password again."""

    def form_valid(self, form: Form) -> HttpResponse:
        """Note the confirmation in the session, under a new key: it is of no use to somebody who knew the old one."""
        response: HttpResponse = super().form_valid(form)
        self.request.session.cycle_key()
        return response


class ChangePassword(views.PasswordChangeView):
    """Changes the password of somebody who knows their present one."""

    def form_invalid(self, form: Form) -> HttpResponse:
        """Record in the audit if the present password was wrong."""
        if "oldpassword" in form.errors:
            confirmation_failed(self.request)
        response: HttpResponse = super().form_invalid(form)
        return response


def closed(request: HttpRequest, **_: str) -> NoReturn:
    """Answer 404 for allauth's other pages, whose URL names its own code needs."""
    raise Http404


urlpatterns = [
    path("login/", views.login, name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("reauthenticate/", Reauthenticate.as_view(), name="account_reauthenticate"),
    path("password/change/", ChangePassword.as_view(), name="account_change_password"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("signup/", closed, name="account_signup"),
    path("email/", closed, name="account_email"),
    path("confirm-email/", closed, name="account_email_verification_sent"),
    path("confirm-email/<str:key>/", closed, name="account_confirm_email"),
    path("password/set/", closed, name="account_set_password"),
    path("password/reset/", closed, name="account_reset_password"),
    path("password/reset/done/", closed, name="account_reset_password_done"),
    path("password/reset/key/<str:uidb36>-<str:key>/", closed, name="account_reset_password_from_key"),
    path("password/reset/key/done/", closed, name="account_reset_password_from_key_done"),
    path("login/code/confirm/", closed, name="account_confirm_login_code"),
]
