"""Accounts are made by an administrator: people sign in, sign out and change their password, nothing else."""

from __future__ import annotations

from typing import NoReturn

from allauth.account import views
from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme

from .sign_ins import confirmation_failed


class Adapter(DefaultAccountAdapter):
    """Closes sign-up."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Nobody makes an account of their own."""
        return False

    def is_safe_url(self, url: str) -> bool:
        """Lead on within this very origin: another port of the host is somebody else's."""
        request = context.request
        return url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure())


class Reauthenticate(views.ReauthenticateView):
    """Asks a signed-in person for their password again."""

    def form_valid(self, form: Form) -> HttpResponse:
        """Note it in the session, under a new key: whoever knew the old one has nothing of it."""
        response: HttpResponse = super().form_valid(form)
        self.request.session.cycle_key()
        return response


class ChangePassword(views.PasswordChangeView):
    """Takes another password of somebody who knows their present one."""

    def form_invalid(self, form: Form) -> HttpResponse:
        """Tell the audit where that one was wrong."""
        if "oldpassword" in form.errors:
            confirmation_failed(self.request)
        response: HttpResponse = super().form_invalid(form)
        return response


def closed(request: HttpRequest, **_: str) -> NoReturn:
    """Answer for allauth's other pages, whose names its own code looks up."""
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
