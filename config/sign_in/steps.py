"""The steps of signing in and of confirming who one is, by a second factor or a password.

A new session key follows each confirmation, of no use to somebody who knew the old one.
"""

from __future__ import annotations

import json
from typing import Any

from allauth.account import views as account_views
from allauth.account.models import Login
from allauth.account.utils import get_next_redirect_url
from allauth.mfa.base import views as base
from allauth.mfa.webauthn import views as webauthn
from allauth.mfa.webauthn.internal import auth as passkeys
from allauth.mfa.webauthn.internal import flows as passkey_flows
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator

from approvals.accounts import factors, sign_ins
from approvals.accounts.methods import ProofMethod
from approvals.views.access import private, reader_of

from .factors import ConfirmByPasskeyForm, recovery_code_counts


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


class Confirm(_Confirming, account_views.ReauthenticateView):
    """Offers all ways of confirming, and takes the password."""

    def _check_reauthentication_method_available(self, request: HttpRequest) -> None:
        """Offer the page to whoever has any way, or nobody would see which; a missing password confirms nothing."""


class ConfirmByCode(_Confirming, base.ReauthenticateView):
    """Takes a code."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Lead to the page that offers all ways."""
        return HttpResponseRedirect(self.passthrough_next_url(reverse("account_reauthenticate")))


@method_decorator(private, name="dispatch")
class ConfirmByPasskey(_Confirming, account_views.BaseReauthenticateView):
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
