"""The security pages of an account, and the steps of signing in and confirming that second factors add.

allauth's views do the work. Here each change is in one transaction with its event, is made only by somebody who lately
confirmed who they are, and takes with it what it makes void: other sessions, and confirmations by a removed factor.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account import views as account_views
from allauth.account.adapter import get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.account.decorators import reauthentication_required
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY, record_authentication
from allauth.account.internal.flows.reauthentication import get_reauthentication_flows
from allauth.account.models import Login
from allauth.account.utils import get_next_redirect_url
from allauth.mfa.base import views as base
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes import views as recovery
from allauth.mfa.recovery_codes.internal import flows as recovery_flows
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.mfa.webauthn.internal import auth as passkeys
from allauth.mfa.webauthn.internal import flows as passkey_flows
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db import transaction
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST, require_safe

from agents.queries.access import address_of
from approvals.accounts import factors, methods, required, sign_ins
from approvals.accounts.methods import ProofMethod
from approvals.policy import step_up
from approvals.views.access import private, reader_of
from checkpoints import actors

from . import qr
from .factors import ConfirmByPasskeyForm, later, passkeys_work

View = Callable[..., HttpResponseBase]


def fresh(view: View) -> View:
    """Guard a view that changes how somebody signs in: they have to confirm who they are, or sign in again."""

    @private
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not get_reauthentication_flows(request.user) and not _signed_in_lately(request):
            return render(request, "account_pages/sign_in_again.html", status=403)
        return reauthentication_required(app="allauth.mfa")(view)(request, *args, **kwargs)  # type: ignore[no-any-return]

    return guarded


def _signed_in_lately(request: HttpRequest) -> bool:
    """Tell whether somebody who has nothing to confirm with, like a new person of single sign-on, just signed in."""
    found = [methods.moment_of(each) for each in get_authentication_records(request, request.user)]
    newest = max((at for at in found if at), default=None)
    return newest is not None and timezone.now() - newest < step_up.within()


@require_safe
@private
def index(request: HttpRequest) -> HttpResponse:
    """Show how the reader signs in."""
    reader = reader_of(request)
    linked = {each.provider: each for each in SocialAccount.objects.filter(user=reader)}
    found = factors.of(reader)
    context = {
        "factors": found, "app": any(each.method == ProofMethod.CODE for each in found),
        "password": reader.has_usable_password(), "passkeys_work": passkeys_work(request),
        "needed": required.lacks(request), "origin": settings.HOLDPOINT_ORIGINS[0],
        "providers": [(each, linked.get(each.name)) for each in settings.HOLDPOINT_OIDC.values()],
        "section": "security",
    }  # fmt: skip
    return render(request, "account_pages/security.html", context)


@method_decorator(fresh, name="dispatch")
class AddApp(totp.ActivateTOTPView):
    """Adds an authenticator app: its code proves that it has the secret."""

    template_name = "account_pages/app.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Draw the secret as a QR code."""
        found: dict[str, Any] = super().get_context_data(**kwargs)
        return {**found, "qr": qr.drawn(found["totp_url"]), "section": "security"}

    def form_valid(self, form: Any) -> HttpResponse:
        """Keep the app, with its event; the code that was just used is used up."""
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            row = Authenticator.objects.get(user=self.request.user, type=Authenticator.Type.TOTP)
            later(row, "counter", form.counter)
            _added(self.request, row, with_codes=self.did_generate_recovery_codes)
        return response


@method_decorator(fresh, name="dispatch")
class AddPasskey(webauthn.AddWebAuthnView):
    """Adds a passkey, which the device keeps so that it can sign in by itself."""

    template_name = "account_pages/passkey.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Offer what the browser needs to make one."""
        form = kwargs.get("form") or self.get_form()
        options = passkeys.begin_registration(reader_of(self.request), passwordless=True)
        return {"form": form, "options": json.dumps(options), "section": "security"}

    def form_valid(self, form: Any) -> HttpResponse:
        """Keep it, with its event."""
        before = set(Authenticator.objects.filter(user=self.request.user).values_list("pk", flat=True))
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            kind = Authenticator.Type.WEBAUTHN
            row = Authenticator.objects.filter(user=self.request.user, type=kind).exclude(pk__in=before).get()
            _added(self.request, row, with_codes=self.did_generate_recovery_codes)
        return response


@require_POST
@fresh
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove one factor; other sessions end, and what was confirmed by it in this one counts no more."""
    reader = reader_of(request)
    with transaction.atomic():
        if not factors.remove(reader, [pk], by=actors.of_user(reader), address=_address(request)):
            raise Http404("No such factor")
        sign_ins.end_all(reader, by=actors.of_user(reader), but=request.session.session_key)
    get_adapter(request).send_notification_mail("holdpoint/factor_removed", reader)
    records = get_authentication_records(request, reader)
    request.session[AUTHENTICATION_METHODS_SESSION_KEY] = [each for each in records if each.get("id") != pk]
    return redirect("mfa_index")


@require_POST
@private
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    """Give a passkey another name."""
    kind = Authenticator.Type.WEBAUTHN
    with transaction.atomic():
        found = Authenticator.objects.select_for_update().filter(user=reader_of(request), type=kind, pk=pk).first()
        if found is None:
            raise Http404("No such passkey")
        name = request.POST.get("name", "").replace("\0", "").strip()[:60]
        if name:
            found.data["name"] = name
            found.save(update_fields=["data"])
    return redirect("mfa_index")


@method_decorator(fresh, name="dispatch")
class RecoveryCodes(recovery.ViewRecoveryCodesView):
    """Shows new recovery codes, this once."""

    template_name = "account_pages/recovery_codes.html"
    extra_context = {"section": "security"}


@require_POST
@fresh
def make_codes(request: HttpRequest) -> HttpResponse:
    """Make new recovery codes; the old ones work no more."""
    reader = reader_of(request)
    if not recovery_flows.can_generate_recovery_codes(reader):
        return redirect("mfa_index")
    with transaction.atomic():
        recovery_flows.generate_recovery_codes(request)
        factors.record("user.recovery_codes_made", reader, by=actors.of_user(reader), address=_address(request))
    return redirect("mfa_view_recovery_codes")


@require_POST
@fresh
def unlink(request: HttpRequest, pk: int) -> HttpResponse:
    """Unlink a provider from the account, unless nothing else would be left to sign in with."""
    reader = reader_of(request)
    with transaction.atomic():
        found = SocialAccount.objects.select_for_update().filter(user=reader, pk=pk).first()
        if found is None:
            raise Http404("No such link")
        left = reader.has_usable_password() or factors.has_passkey(reader)
        if not left:
            return redirect(reverse("mfa_index") + "?last=1")
        found.delete()
        data = {"provider": found.provider, "address": _address(request)}
        factors.record("user.unlinked", reader, by=actors.of_user(reader), **data)
    return redirect("mfa_index")


class SecondStep(base.AuthenticateView):
    """Asks for the second factor at a sign-in."""

    template_name = "account/second_step.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Offer what the person has; where a row of theirs is broken, nothing, as no factor counts then."""
        user = self.stage.login.user
        if factors.broken(user):
            return {"broken": True, "form": self.auth_form}
        found: dict[str, Any] = super().get_context_data(**kwargs)
        have = {each.method for each in factors.of(user)}
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
        have = {each.method for each in factors.of(user) if each.sound}
        offered = {
            "by_password": user.has_usable_password(), "by_passkey": ProofMethod.PASSKEY in have,
            "by_code": bool(have & {ProofMethod.CODE, ProofMethod.RECOVERY_CODE}),
        }  # fmt: skip
        if self.only:
            offered = {name: value and name == self.only for name, value in offered.items()}
        return {**found, **offered, "only": self.only}

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
            if factors.broken(request.user):
                return JsonResponse({}, status=409)
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


def proved(request: HttpRequest, row: Authenticator) -> None:
    """Note in the session that its person has this factor: they just used it, to add it."""
    record_authentication(request, request.user, "mfa", id=row.pk, type=row.type)


def _added(request: HttpRequest, row: Authenticator, *, with_codes: bool) -> None:
    reader = reader_of(request)
    by, address = actors.of_user(reader), _address(request)
    proved(request, row)
    factors.record("user.factor_added", reader, by=by, factor=methods.FACTORS[row.type], number=row.pk, address=address)
    if with_codes:
        factors.record("user.recovery_codes_made", reader, by=by, address=address)


def _address(request: HttpRequest) -> str:
    return address_of(request)[:60]
