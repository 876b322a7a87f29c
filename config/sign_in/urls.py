"""The addresses of signing in, and of the security pages of an account."""

from __future__ import annotations

from typing import NoReturn

from allauth.account import views
from django.http import Http404, HttpRequest
from django.urls import path, register_converter
from django.urls.converters import StringConverter

from . import accounts, openid, security


class Base36(StringConverter):
    """The number of an account in a link; the key after it has a hyphen too."""

    regex = "[0-9A-Za-z]+"


register_converter(Base36, "base36")


def closed(request: HttpRequest, **_: str) -> NoReturn:
    """Answer 404 for allauth's other pages, whose URL names its own code needs."""
    raise Http404


urlpatterns = [
    path("accounts/login/", accounts.SignIn.as_view(), name="account_login"),
    path("accounts/logout/", views.logout, name="account_logout"),
    path("accounts/second-step/", accounts.SecondStep.as_view(), name="mfa_authenticate"),
    path("accounts/passkey/", accounts.SignInByPasskey.as_view(), name="mfa_login_webauthn"),
    path("accounts/reauthenticate/", accounts.Confirm.as_view(), name="account_reauthenticate"),
    path("accounts/reauthenticate/code/", accounts.ConfirmByCode.as_view(), name="mfa_reauthenticate"),
    path("accounts/reauthenticate/passkey/", accounts.ConfirmByPasskey.as_view(), name="mfa_reauthenticate_webauthn"),
    path("accounts/password/change/", accounts.ChangePassword.as_view(), name="account_change_password"),
    path("accounts/password/reset/", accounts.ForgotPassword.as_view(), name="account_reset_password"),
    path("accounts/password/reset/done/", views.password_reset_done, name="account_reset_password_done"),
    path(
        "accounts/password/reset/key/<base36:uidb36>-<str:key>/",
        accounts.NewPassword.as_view(),
        name="account_reset_password_from_key",
    ),
    path(
        "accounts/password/reset/key/done/",
        views.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("accounts/inactive/", views.account_inactive, name="account_inactive"),
    path("accounts/oidc/<str:provider_id>/login/", openid.login, name="openid_connect_login"),
    path("accounts/oidc/<str:provider_id>/callback/", openid.callback, name="openid_connect_callback"),
    path("account/security/", security.index, name="mfa_index"),
    path("account/security/app/", security.AddApp.as_view(), name="mfa_activate_totp"),
    path("account/security/passkeys/", security.AddPasskey.as_view(), name="mfa_add_webauthn"),
    path("account/security/passkeys/<int:pk>/names/", security.rename, name="passkey-names"),
    path("account/security/factors/<int:pk>/removals/", security.remove, name="factor-removals"),
    path("account/security/recovery-codes/", security.RecoveryCodes.as_view(), name="mfa_view_recovery_codes"),
    path("account/security/recovery-codes/new/", security.make_codes, name="mfa_generate_recovery_codes"),
    path("account/security/providers/<int:pk>/removals/", security.unlink, name="provider-removals"),
    path("accounts/signup/", closed, name="account_signup"),
    path("accounts/email/", closed, name="account_email"),
    path("accounts/confirm-email/", closed, name="account_email_verification_sent"),
    path("accounts/confirm-email/<str:key>/", closed, name="account_confirm_email"),
    path("accounts/password/set/", closed, name="account_set_password"),
    path("accounts/login/code/confirm/", closed, name="account_confirm_login_code"),
    path("accounts/3rdparty/signup/", closed, name="socialaccount_signup"),
    path("accounts/3rdparty/", security.index, name="socialaccount_connections"),
    path("accounts/3rdparty/cancelled/", closed, name="socialaccount_login_cancelled"),
    path("accounts/3rdparty/error/", closed, name="socialaccount_login_error"),
    path("account/security/app/removals/", closed, name="mfa_deactivate_totp"),
    path("account/security/passkeys/all/", closed, name="mfa_list_webauthn"),
]
