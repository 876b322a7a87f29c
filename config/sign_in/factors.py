"""Adapts allauth's second factors: what a passkey is bound to, how often a code may be tried, and that it works once.

allauth remembers a used code in the cache of one process, and does not look at a passkey's counter. Here both are in
the factor's row, compared and written under its lock.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from allauth.account.utils import get_next_redirect_url
from allauth.core import context
from allauth.core.internal import ratelimit
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base import forms
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal import auth as totp
from allauth.mfa.utils import decrypt
from allauth.mfa.webauthn import forms as webauthn
from allauth.mfa.webauthn.internal import auth as passkeys
from django import forms as django_forms
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse

from approvals.accounts import factors, required
from approvals.accounts.factors import FACTORS, ProofMethod

from .attempts import count_try, device_of, factor_refused

# Wrong codes at one place, and of one account at all strange places together: of a million codes three are right at a
# time, so that whoever knows the password and has any number of addresses finds one in a day with a chance of 0.02 %.
WRONG_CODES, WRONG_CODES_A_DAY, WRONG_CODES_AT_STRANGERS = "5/5m/key", "20/d/key", "60/d/key"

# Parts of a passkey's answer that stand for bytes, as base64url.
BINARY = ("clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle", "publicKey")


class FactorAdapter(DefaultMFAAdapter):
    """Binds passkeys to the first origin's host, and keeps secrets encrypted."""

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """Return what passkeys are bound to: the host of the settings, whatever the request calls it."""
        return {"id": rp_id(), "name": "Holdpoint"}

    def get_totp_issuer(self) -> str:
        """Return the name that the authenticator app shows, with the host, since people have several."""
        return f"Holdpoint ({rp_id()})"

    def _get_user_identifier(self, user: User) -> str:
        """Return the account's name in the app, and beside the passkey."""
        return str(user.get_username())

    def generate_authenticator_name(self, user: User, type: Any) -> str:
        """Return the name of a passkey for which none was given."""
        return "Passkey"

    def encrypt(self, text: str) -> str:
        """Encrypt a secret for its row."""
        return factors.encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Return a row's secret."""
        return factors.decrypt(encrypted_text)


def rp_id() -> str:
    """Return the host that passkeys are bound to."""
    return str(urlsplit(settings.HOLDPOINT_ORIGINS[0]).hostname)


def passkeys_work(request: Any) -> bool:
    """Tell whether this page's address is the one that passkeys are bound to."""
    return str(request.get_host()).rpartition(":")[0].strip("[]") == rp_id() or request.get_host() == rp_id()


def count_code(user: User) -> ratelimit.RateLimitUsage:
    """Count one more try of a code, where it comes from. Raises ValidationError for one too many.

    Sessions in which a second factor was proved share a place: a new key of the session would begin another count. Any
    other may be of whoever knows the password, from before the account had a factor.
    """
    request = context.request
    proved = request.user == user and required.met(request.session)
    known = "signed in" if proved else device_of(request, user.get_username().lower(), proved=True)
    place = f"{user.pk}:{known or ratelimit.get_ip(request)}"
    limits = [(WRONG_CODES, place), (WRONG_CODES_A_DAY, place)]
    strange = [] if known else [(WRONG_CODES_AT_STRANGERS, f"{user.pk} at strangers")]
    counted = count_try(request, "factor", *limits, *strange)
    if counted is None:
        raise django_forms.ValidationError(
            "Too many tries. Wait some minutes, use a passkey, or sign in where you did before."
        )
    return counted


class _CodeForm(forms.BaseAuthenticateForm):
    """Takes a code of the app, or a recovery code; each works once."""

    def types(self) -> Collection[str]:
        return {Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES}

    def clean_code(self) -> str:
        counted = count_code(self.user)
        code = str(self.cleaned_data["code"])
        for row in Authenticator.objects.filter(user=self.user, type__in=self.types()):
            if _takes_code(row, code):
                row.user = self.user
                self.authenticator = row
                counted.rollback()
                return code
        factor_refused(context.request, self.user, ProofMethod.CODE)
        raise django_forms.ValidationError("This code is wrong, or was used before.")


class CodeForm(_CodeForm, forms.AuthenticateForm):
    """The second step of signing in."""


class ConfirmByCodeForm(_CodeForm, forms.ReauthenticateForm):
    """The confirmation of who is signed in."""

    def types(self) -> Collection[str]:
        recovering = recovery_code_counts(context.request)
        return super().types() if recovering else {Authenticator.Type.TOTP}


def recovery_code_counts(request: Any) -> bool:
    """Tell whether a recovery code confirms what somebody is about to do: how they sign in, after a device was lost.

    It confirms nothing else, and is not used up for nothing.
    """
    back = get_next_redirect_url(request)
    return back is None or back.startswith(reverse("mfa_index"))


class ActivateForm(ActivateTOTPForm):
    """Takes the first code of an app."""

    def clean_code(self) -> str:
        code = str(self.cleaned_data["code"])
        self.counter = _counter(self.secret, code)
        if self.counter is None:
            factor_refused(context.request, self.user, ProofMethod.CODE)
            raise django_forms.ValidationError("This code is wrong. Take the one that the app shows now.")
        return code


class CredentialField(django_forms.JSONField):
    """A passkey's answer as JSON. Where it has a number in place of bytes, the library would make as many bytes."""

    def __init__(self) -> None:
        super().__init__(widget=django_forms.HiddenInput)

    def to_python(self, value: Any) -> Any:
        """Return the answer. Raises ValidationError."""
        try:
            found = super().to_python(value)
        except (ValueError, RecursionError) as junk:
            raise _not_read() from junk
        answer = found.get("response") if isinstance(found, dict) else None
        if found is not None and not (isinstance(answer, dict) and _written(found, "id", "rawId") and _written(answer)):
            raise _not_read()
        return found


class AddPasskeyForm(webauthn.AddWebAuthnForm):
    """Takes a new passkey, which has to know its owner and to come from this very site."""

    credential = CredentialField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.pop("passwordless", None)

    def clean(self) -> dict[str, Any]:
        credential = self.cleaned_data.get("credential")
        if credential:
            _check_origin(_read(passkeys.parse_registration_response, credential).response.client_data.origin)
        cleaned: dict[str, Any] = super().clean()
        return cleaned


class PasskeyForm(webauthn.AuthenticateWebAuthnForm):
    """Takes the answer of a passkey as the second step; its counter has to go up where it counts at all."""

    credential = CredentialField()

    def clean_credential(self) -> Authenticator:
        credential = self.cleaned_data["credential"]
        user = self.user
        answer = _read(passkeys.parse_authentication_response, credential)
        user = user or passkeys.extract_user_from_response(credential)
        try:
            _check_origin(answer.response.client_data.origin)
            row: Authenticator = passkeys.complete_authentication(user, credential)
            counter = answer.response.authenticator_data.counter
            # One that did not go up is a copy's, or one that never counts and stays 0.
            if (counter or row.data.get("counter")) and not advance_counter(row, "counter", counter):
                raise django_forms.ValidationError("This passkey may have been copied, and was refused.")
        except django_forms.ValidationError:
            factor_refused(context.request, user, ProofMethod.PASSKEY)
            raise
        return row


class SignInByPasskeyForm(PasskeyForm, webauthn.LoginWebAuthnForm):
    """The only step of signing in."""


class ConfirmByPasskeyForm(PasskeyForm, webauthn.ReauthenticateWebAuthnForm):
    """The confirmation of who is signed in."""


def _written(part: Mapping[str, Any], *names: str) -> bool:
    """Tell whether these values, which stand for bytes, are texts; without names, those of an answer."""
    return all(isinstance(part.get(name, ""), str | None) for name in names or BINARY)


def _read(parse: Callable[[Any], Any], credential: Any) -> Any:
    """Parse a passkey's answer. Raises ValidationError for what the library cannot read, in whatever way it fails."""
    try:
        return parse(credential)
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError, struct.error) as junk:
        raise _not_read() from junk


def _not_read() -> django_forms.ValidationError:
    return django_forms.ValidationError("This passkey's answer cannot be read.")


def _check_origin(origin: str) -> None:
    if origin not in settings.HOLDPOINT_ORIGINS:
        raise django_forms.ValidationError("This passkey was used on another site.")


def _takes_code(row: Authenticator, code: str) -> bool:
    if not factors.is_readable(row):
        return False
    if FACTORS[row.type] == ProofMethod.RECOVERY_CODE:
        return bool(row.wrap().validate_code(code))  # under the row's lock
    counter = _counter(decrypt(row.data["secret"]), code)
    return counter is not None and advance_counter(row, "counter", counter)


def _counter(secret: str, code: str) -> int | None:
    """Return the counter of the code's half minute, now or the ones beside it; None for a wrong code."""
    counter: int
    for counter in totp.yield_hotp_counters_from_time():
        expected = totp.format_hotp_value(totp.hotp_value(secret, counter))
        if totp.compare_user_code(actual=code, expected=expected):
            return counter
    return None


@transaction.atomic
def advance_counter(row: Authenticator, name: str, value: int) -> bool:
    """Note the value in the row if it is above the one there; tell whether it was."""
    locked = Authenticator.objects.select_for_update().filter(pk=row.pk).first()
    if locked is None or value <= int(locked.data.get(name, -1)):
        return False
    locked.data[name] = row.data[name] = value
    locked.save(update_fields=["data"])
    return True
