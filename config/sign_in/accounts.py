"""Adapts allauth: people sign in, confirm who they are, sign out, change and reset their password.

Only an administrator creates accounts, or a provider of single sign-on where the settings say so. Wrong passwords are
counted by `attempts`: by account and place, and where the place is strange to the account, by address and by account
too. A new session key follows each confirmation, of no use to somebody who knew the old one.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from allauth.account import views
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.account.forms import ResetPasswordForm
from allauth.account.models import Login
from allauth.account.utils import get_next_redirect_url
from allauth.core import context
from allauth.core.internal import ratelimit
from allauth.mfa.base import views as base
from allauth.mfa.webauthn import views as webauthn
from allauth.mfa.webauthn.internal import auth as passkeys
from allauth.mfa.webauthn.internal import flows as passkey_flows
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme

from agents.access import address_of
from approvals.accounts import factors, preferences, sign_ins
from approvals.accounts.factors import ProofMethod
from approvals.models import Message
from approvals.notifications import delivering, email
from approvals.notifications.building import NoticeKind, Urgency
from approvals.views.access import private, reader_of
from checkpoints import actors

from . import openid
from .attempts import client_address, confirmation_failed, count_try, device_of, mark_device
from .factors import ConfirmByPasskeyForm, recovery_code_counts

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
        device, address = device_of(request, name), ratelimit.get_ip(request)
        strange = [] if device else [(WRONG_THERE, f"from {address}"), (WRONG_ANYWHERE, f"of {name}")]
        counted = count_try(request, "login_failed", (WRONG, f"{name}:{device or address}"), *strange)
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
            proved = factors.of_records(get_authentication_records(request, user))
            sign_ins.begin(request, user, methods=proved, by=by, address=client_address(request))
        preferences.hand_over(response, preferences.profile_of(user))
        factor = any(method in factors.SECOND_FACTORS for method in proved)
        mark_device(request, response, user.get_username().lower(), proved=factor)
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


class SecondStep(base.AuthenticateView):
    """Asks for the second factor at a sign-in."""

    template_name = "account/second_step.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Offer what the person has that can be read."""
        found: dict[str, Any] = super().get_context_data(**kwargs)
        have = {factor.method for factor in factors.list_factors(self.stage.login.user) if factor.sound}
        offered = {
            "passkey": ProofMethod.PASSKEY in have,
            "code": bool(have & {ProofMethod.CODE, ProofMethod.RECOVERY_CODE}),
        }
        return {**found, **offered, "options": json.dumps(found["js_data"]["request_options"])}


class SignInByPasskey(webauthn.LoginWebAuthnView):
    """Signs in by a passkey alone."""

    def form_invalid(self, form: Any) -> HttpResponse:
        """Say on the sign-in page that the passkey was refused."""
        return redirect(reverse("account_login") + "?passkey=refused")

    def form_valid(self, form: Any) -> HttpResponse:
        """Sign in whom the passkey names, and lead to the page that was asked for."""
        row = form.cleaned_data["credential"]
        login = Login(user=row.user, redirect_url=get_next_redirect_url(self.request))
        answer: HttpResponse = passkey_flows.perform_passwordless_login(self.request, row, login)
        return answer


class _Confirming:
    """The common part of the three ways to confirm who one is: one page offers all, and the session gets a new key."""

    request: HttpRequest
    template_name = "account/reauthenticate.html"
    only = ""  # the one way that this address offers

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = super().get_context_data(**kwargs)  # type: ignore[misc]
        user = reader_of(self.request)
        have = {factor.method for factor in factors.list_factors(user) if factor.sound}
        recovery = ProofMethod.RECOVERY_CODE in have and recovery_code_counts(self.request)
        offered = {
            "by_password": user.has_usable_password(), "by_passkey": ProofMethod.PASSKEY in have,
            "by_code": ProofMethod.CODE in have or recovery,
        }  # fmt: skip
        if self.only:
            offered = {name: value and name == self.only for name, value in offered.items()}
        return {**found, **offered, "only": self.only, "recovery": recovery}

    def form_valid(self, form: Form) -> HttpResponse:
        response: HttpResponse = super().form_valid(form)  # type: ignore[misc]
        sign_ins.renew(self.request)
        return response


class Confirm(_Confirming, views.ReauthenticateView):
    """Offers all ways of confirming, and takes the password."""

    def _check_reauthentication_method_available(self, request: HttpRequest) -> None:
        """Offer the page to whoever has any way, or nobody would see which; a missing password confirms nothing."""


class ConfirmByCode(_Confirming, base.ReauthenticateView):
    """Takes a code."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Lead to the page that offers all ways."""
        return HttpResponseRedirect(self.passthrough_next_url(reverse("account_reauthenticate")))


@method_decorator(private, name="dispatch")
class ConfirmByPasskey(_Confirming, views.BaseReauthenticateView):
    """Takes a passkey; what it is asked to sign comes as JSON."""

    form_class = ConfirmByPasskeyForm
    only = "by_passkey"

    def _check_reauthentication_method_available(self, request: HttpRequest) -> None:
        """Show the page to people without a passkey too: it says where to add one."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Return the options that the browser passes to the passkey, or the page that asks for it."""
        if "application/json" in request.headers.get("Accept", ""):
            return JsonResponse({"request_options": passkeys.begin_authentication(reader_of(request))})
        page: HttpResponseBase = super().get(request, *args, **kwargs)
        return page

    def get_form_kwargs(self) -> dict[str, Any]:
        """Pass the reader on to the form."""
        return {**super().get_form_kwargs(), "user": self.request.user}

    def form_valid(self, form: Any) -> HttpResponse:
        """Note the confirmation in the session."""
        passkey_flows.reauthenticate(self.request, form.cleaned_data["credential"])
        return super().form_valid(form)


class ResetForm(ResetPasswordForm):
    """Asks where to send the link. A worker sends it: how long the answer takes would tell whose address it is."""

    def clean_email(self) -> str:
        """Find the accounts that have a password to reset: those of single sign-on have none, and get none by mail."""
        email = str(self.cleaned_data["email"])
        self.users = [user for user in openid.accounts_of(email) if user.has_usable_password()]
        return email

    def save(self, request: HttpRequest, **_more: Any) -> str:
        """Write a notice for each account. One without an account takes as long, and is dropped by the worker."""
        link = partial(Message, kind=NoticeKind.RESET, channel=email.NAME, urgency=Urgency.HIGH)
        Message.objects.bulk_create([link(user=user) for user in self.users] or [link()])
        delivering.ring()
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
