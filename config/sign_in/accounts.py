"""Adapts allauth: people sign in, sign out, change and reset their password. Only an administrator creates accounts, or
a provider of single sign-on where the settings say so.

Wrong passwords are counted by `tries`: by account and place, and where the place is strange to the account, by address
and by account too.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from allauth.account import views
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.account.forms import ResetPasswordForm
from allauth.core import context
from allauth.core.internal import ratelimit
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme

from agents.queries.access import address_of
from approvals.accounts import methods, preferences, sign_ins
from approvals.models import Notice
from approvals.notifications import email, notifying
from approvals.notifications.message import NoticeKind, Urgency
from checkpoints import actors

from . import openid, tries
from .addresses import accounts_of
from .attempts import confirmation_failed

# Wrong passwords: of one account from one place, of all accounts from one address, of one account from all of them.
WRONG, WRONG_THERE, WRONG_ANYWHERE = "5/5m/key", "10/m/key", "100/h/key"


class Adapter(DefaultAccountAdapter):
    """Closes sign-up and counts wrong passwords."""

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the place that a limit counts; allauth takes all of IPv4 for one where it is written as IPv6."""
        return address_of(request)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Refuse another guess after too many; an attempt with the right password is not counted."""
        name = str(credentials.get("username", "")).lower()
        device, address = tries.device_of(request, name), ratelimit.get_ip(request)
        strange = [] if device else [(WRONG_THERE, f"from {address}"), (WRONG_ANYWHERE, f"of {name}")]
        counted = tries.count(request, "login_failed", (WRONG, f"{name}:{device or address}"), *strange)
        if counted is None:
            raise self.validation_error("too_many_login_attempts")
        self._login_failed_rl_usage = counted

    def post_login(self, request: HttpRequest, user: User, **more: Any) -> HttpResponse:
        """List the session, and set the cookie that marks the browser as one in which this person has signed in."""
        response: HttpResponse = super().post_login(request, user, **more)
        by = actors.of_user(user)
        with transaction.atomic():
            if login := (more.get("signal_kwargs") or {}).get("sociallogin"):
                openid.signed_in(request, login)
            proved = methods.of_records(get_authentication_records(request, user))
            sign_ins.begin(request, user, methods=proved, by=by, address=address_of(request)[:60])
        preferences.hand_over(response, preferences.profile_of(user))
        factor = any(method in methods.SECOND_FACTORS for method in proved)
        tries.mark_device(request, response, user.get_username().lower(), proved=factor)
        return response

    def logout(self, request: HttpRequest) -> None:
        """Sign out, and take the session off the list."""
        if isinstance(request.user, User):
            sign_ins.end_current(request, request.user)
        super().logout(request)

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return False: nobody creates an account of their own."""
        return False

    def add_message(self, request: HttpRequest, level: int, *args: Any, **kwargs: Any) -> None:
        """Say nothing in passing: the page that follows shows what is so now."""

    def is_safe_url(self, url: str) -> bool:
        """Tell whether a redirect stays within this very origin: another port of the host is another site."""
        request = context.request
        return url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure())


class SignIn(views.LoginView):
    """Signs in, by a password or by what the page offers besides."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Offer the providers of the settings."""
        found: dict[str, Any] = super().get_context_data(**kwargs)
        return {**found, "providers": list(settings.HOLDPOINT_OIDC.values())}


class ResetForm(ResetPasswordForm):
    """Asks where to send the link. A worker sends it: how long the answer takes would tell whose address it is."""

    def clean_email(self) -> str:
        """Find the accounts that have a password to reset: those of single sign-on have none, and get none by mail."""
        email = str(self.cleaned_data["email"])
        self.users = [user for user in accounts_of(email) if user.has_usable_password()]
        return email

    def save(self, request: HttpRequest, **_more: Any) -> str:
        """Write a notice for each account. One without an account takes as long, and is dropped by the worker."""
        link = partial(Notice, kind=NoticeKind.RESET, channel=email.NAME, urgency=Urgency.HIGH)
        Notice.objects.bulk_create([link(user=user) for user in self.users] or [link()])
        notifying.ring()
        return str(self.cleaned_data["email"])


class ForgotPassword(views.PasswordResetView):
    """Sends a link with which to set a new password. It says the same whether there is such an account."""

    form_class = ResetForm


class NewPassword(views.PasswordResetFromKeyView):
    """Sets a new password by a link that was sent; every session of before ends by itself."""

    def logout(self) -> None:
        """Sign out whoever else is signed in there, once the form is sent: opening the link changes nothing."""
        if self.request.method == "POST":
            super().logout()

    def form_valid(self, form: Form) -> HttpResponse:
        """Set it in one transaction with its event and the end of the sessions."""
        with transaction.atomic():
            person = self.reset_user
            sign_ins.end_all(person, by=actors.of_user(person))
            response: HttpResponse = super().form_valid(form)
        return response


class ChangePassword(views.PasswordChangeView):
    """Changes the password of somebody who knows their present one. Their other sessions end by themselves."""

    extra_context = {"section": "security"}

    def form_valid(self, form: Form) -> HttpResponse:
        """Change it, and keep this session in the list under its new key."""
        before = self.request.session.session_key
        with transaction.atomic():
            sign_ins.end_all(self.request.user, by=actors.of_user(self.request.user), but=self.request.session)
            response: HttpResponse = super().form_valid(form)
            sign_ins.moved(self.request, before)
        return response

    def form_invalid(self, form: Form) -> HttpResponse:
        """Record in the audit if the present password was wrong."""
        if "oldpassword" in form.errors:
            confirmation_failed(self.request)
        response: HttpResponse = super().form_invalid(form)
        return response
