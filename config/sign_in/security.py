"""The security pages of an account: passkeys, the authenticator app, recovery codes, linked providers.

allauth's views do the work. Here each change is in one transaction with its event, is made only by somebody who lately
confirmed who they are, and takes with it what it makes void: other sessions, and confirmations by a removed factor.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.account.decorators import reauthentication_required
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY, record_authentication
from allauth.account.internal.flows.reauthentication import get_reauthentication_flows
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes import views as recovery
from allauth.mfa.recovery_codes.internal import flows as recovery_flows
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.mfa.webauthn.internal import auth as passkeys
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST
from qrcode.main import QRCode

from approvals.accounts import factors, required, sign_ins
from approvals.accounts.factors import ProofMethod
from approvals.policy import step_up
from approvals.views.access import private, private_get, private_post, reader_of
from checkpoints import actors

from .attempts import client_address
from .factors import advance_counter, passkeys_work

View = Callable[..., HttpResponseBase]


def require_confirmation(view: View) -> View:
    """Guard a view that changes how somebody signs in: they have to confirm who they are, or sign in again."""

    @private
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not get_reauthentication_flows(request.user):
            # Somebody who has nothing to confirm with, like a new person of single sign-on, has to have just signed in.
            found = [factors.moment_of(record) for record in get_authentication_records(request, request.user)]
            newest = max((at for at in found if at), default=None)
            if newest is None or timezone.now() - newest >= step_up.within():
                return render(request, "account_pages/sign_in_again.html", status=403)
        return reauthentication_required(app="allauth.mfa")(view)(request, *args, **kwargs)  # type: ignore[no-any-return]

    return guarded


@private_get
def index(request: HttpRequest) -> HttpResponse:
    """Show how the reader signs in."""
    reader = reader_of(request)
    linked = {account.provider: account for account in SocialAccount.objects.filter(user=reader)}
    found = factors.list_factors(reader)
    context = {
        "factors": found, "app": any(factor.method == ProofMethod.CODE for factor in found),
        "password": reader.has_usable_password(), "passkeys_work": passkeys_work(request),
        "needed": required.lacks(request), "origin": settings.HOLDPOINT_ORIGINS[0],
        "providers": [(provider, linked.get(provider.name)) for provider in settings.HOLDPOINT_OIDC.values()],
        "section": "security",
    }  # fmt: skip
    return render(request, "account_pages/security.html", context)


def draw_code(text: str) -> dict[str, Any]:
    """Draw a QR code as one SVG path, so that it stands in the page itself and the content policy stays strict.

    Return the squares of a side, with the quiet zone, and the path of the dark ones.
    """
    code = QRCode(border=4)
    code.add_data(text)
    code.make(fit=True)
    rows = code.get_matrix()
    dark = [(x, y) for y, row in enumerate(rows) for x, on in enumerate(row) if on]
    return {"side": len(rows), "path": "".join(f"M{x} {y}h1v1h-1z" for x, y in dark)}


@method_decorator(require_confirmation, name="dispatch")
class AddApp(totp.ActivateTOTPView):
    """Adds an authenticator app: its code proves that it has the secret."""

    template_name = "account_pages/app.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Draw the secret as a QR code."""
        found: dict[str, Any] = super().get_context_data(**kwargs)
        return {**found, "qr": draw_code(found["totp_url"]), "section": "security"}

    def form_valid(self, form: Any) -> HttpResponse:
        """Keep the app, with its event; the code that was just used is used up."""
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            row = Authenticator.objects.get(user=self.request.user, type=Authenticator.Type.TOTP)
            advance_counter(row, "counter", form.counter)
            _added(self.request, row, with_codes=self.did_generate_recovery_codes)
        return response


@method_decorator(require_confirmation, name="dispatch")
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
@require_confirmation
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove one factor; other sessions end."""
    reader = reader_of(request)
    with transaction.atomic():
        _lock(reader)
        if not factors.remove(reader, [pk], by=actors.of_user(reader), address=client_address(request)):
            raise Http404("No such factor")
        if not _can_sign_in(reader):
            return _refuse_last_way()
        _end_proofs(request, reader)
    return redirect("mfa_index")


@private_post
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


@method_decorator(require_confirmation, name="dispatch")
class RecoveryCodes(recovery.ViewRecoveryCodesView):
    """Shows new recovery codes, this once."""

    template_name = "account_pages/recovery_codes.html"
    extra_context = {"section": "security"}


@require_POST
@require_confirmation
def make_codes(request: HttpRequest) -> HttpResponse:
    """Make new recovery codes; the old ones work no more, and other sessions end."""
    reader = reader_of(request)
    if not recovery_flows.can_generate_recovery_codes(reader):
        return redirect("mfa_index")
    with transaction.atomic():
        recovery_flows.generate_recovery_codes(request)
        factors.record("user.recovery_codes_made", reader, by=actors.of_user(reader), address=client_address(request))
        _end_proofs(request, reader)
    return redirect("mfa_view_recovery_codes")


@require_POST
@require_confirmation
def unlink(request: HttpRequest, pk: int) -> HttpResponse:
    """Unlink a provider from the account, unless nothing else would be left to sign in with; other sessions end."""
    reader = reader_of(request)
    with transaction.atomic():
        _lock(reader)
        found = SocialAccount.objects.filter(user=reader, pk=pk).first()
        if found is None:
            raise Http404("No such link")
        found.delete()
        if not _can_sign_in(reader):
            return _refuse_last_way()
        data = {"provider": found.provider, "address": client_address(request)}
        factors.record("user.unlinked", reader, by=actors.of_user(reader), **data)
        _end_proofs(request, reader)
    return redirect("mfa_index")


def _lock(reader: User) -> None:
    """Let one removal at a time look at what is left."""
    User.objects.select_for_update().get(pk=reader.pk)


def _end_proofs(request: HttpRequest, reader: User) -> None:
    """End other sessions; drop from this one what was proved by a factor or provider that the account has no more."""
    sign_ins.end_all(reader, by=actors.of_user(reader), but=request.session)
    ids = set(Authenticator.objects.filter(user=reader).values_list("pk", flat=True))
    linked = set(SocialAccount.objects.filter(user=reader).values_list("provider", flat=True))
    owned: dict[str, tuple[str, Collection[Any]]] = {"mfa": ("id", ids), "socialaccount": ("provider", linked)}

    def is_there(record: Mapping[str, Any]) -> bool:
        name, there = owned.get(str(record.get("method")), ("", ()))
        return not name or record.get(name) in there

    records = list(filter(is_there, get_authentication_records(request, reader)))
    request.session[AUTHENTICATION_METHODS_SESSION_KEY] = records
    if not any(record.get("provider") in required.vouching() for record in records):
        request.session.pop(required.TRUSTED, None)


def _can_sign_in(reader: User) -> bool:
    """Tell whether something is left that signs somebody in by itself."""
    linked = SocialAccount.objects.filter(user=reader, provider__in=settings.HOLDPOINT_OIDC)
    return reader.has_usable_password() or factors.has_passkey(reader) or linked.exists()


def _refuse_last_way() -> HttpResponse:
    transaction.set_rollback(True)
    return redirect(reverse("mfa_index") + "?last=1")


def _added(request: HttpRequest, row: Authenticator, *, with_codes: bool) -> None:
    reader = reader_of(request)
    by, address = actors.of_user(reader), client_address(request)
    # Its person has this factor: they just used it, to add it.
    record_authentication(request, request.user, "mfa", id=row.pk, type=row.type)
    factors.record("user.factor_added", reader, by=by, factor=factors.FACTORS[row.type], number=row.pk, address=address)
    if with_codes:  # which come with the first factor: sessions of before were opened by the password alone
        sign_ins.end_all(reader, by=by, but=request.session)
        factors.record("user.recovery_codes_made", reader, by=by, address=address)
