"""OpenID Connect: what allauth does not check itself, and whom a person from a provider is here.

allauth sends and checks the state, and PKCE by the settings. Here a nonce goes along and has to come back, the id
token's signature is always verified, its issuer is the one of the settings, and the profile is of the same subject.

A person is known by the provider's subject alone. An account is linked to one by its owner, signed in, after they
confirmed who they are; or, where the settings allow it, by an e-mail address that the provider verified, that exactly
one account has, if it is no administrator's and is not linked to the provider yet.

A provider's claims give teams and marks. Only teams that the settings name are given and taken; any other membership is
an administrator's and stays. Claims that say nothing of groups take all of those away: silence is no membership. Staff
and superusers are made and unmade only where the settings say by which value.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Set
from typing import Any, NoReturn

import jwt
from allauth.account.internal.decorators import login_not_required
from allauth.account.internal.flows.reauthentication import is_reauthentication_required
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, _build_apps_from_settings, get_adapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from jwt import PyJWKSet
from requests import RequestException
from structlog import get_logger

from approvals.accounts import required
from approvals.presentation import names
from checkpoints import actors
from checkpoints.events import event_log

from .attempts import client_address
from .providers import Provider
from .security import require_confirmation

log = get_logger()
# By a private key of the provider's: a signature by the client's own secret could be anybody's who knows it.
SIGNED_BY = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
LEEWAY = 60  # seconds by which the provider's clock may differ


class Protocol(OpenIDConnectOAuth2Adapter):
    """Speaks with one provider."""

    nonce = ""

    @property
    def openid_config(self) -> dict[str, Any]:
        """Return the provider's own description, which has to name the issuer of the settings."""
        found: dict[str, Any] = super().openid_config
        if found.get("issuer") != provider_of(self.provider_id).issuer:
            raise OAuth2Error("The provider calls itself by another name than the settings do.")
        return found

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any) -> SocialLogin:
        """Return whom the provider names, once the nonce and the subjects agree."""
        login: SocialLogin = super().complete_login(request, app, token, **kwargs)
        claims = login.account.extra_data
        answer, profile = claims.get("id_token"), claims.get("userinfo") or {}
        if not isinstance(answer, dict) or not self.nonce:
            raise OAuth2Error("The provider sent no id token.")
        if not constant_time_compare(str(answer.get("nonce", "")), self.nonce):
            raise OAuth2Error("The id token answers another request.")
        if not isinstance(profile, dict) or profile.get("sub", answer.get("sub")) != answer.get("sub"):
            raise OAuth2Error("The profile is another subject's.")
        return login

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        """Return what a token says that the provider signed for this client; allauth wants each key to be named."""
        with get_adapter().get_requests_session() as session:
            keys = session.get(self.openid_config["jwks_uri"])
            keys.raise_for_status()
        try:
            known = PyJWKSet.from_dict(keys.json()).keys
            named = jwt.get_unverified_header(id_token).get("kid")
            fitting = [key for key in known if key.key_id == named] if named else known
            if len(fitting) != 1:
                raise OAuth2Error("The id token is signed by a key that the provider does not have.")
            found: dict[str, Any] = jwt.decode(
                id_token, fitting[0], algorithms=SIGNED_BY, audience=app.client_id, leeway=LEEWAY,
                issuer=self.openid_config["issuer"], options={"require": ["exp", "iat", "aud", "iss", "sub"]},
            )  # fmt: skip
        except (jwt.PyJWTError, KeyError) as fault:
            raise OAuth2Error("The id token does not verify.") from fault
        if isinstance(found["aud"], list) and len(found["aud"]) > 1 and found.get("azp") != app.client_id:
            raise OAuth2Error("The id token is another client's.")
        return found


class Connect(OpenIDConnectProvider):
    """The provider, as allauth knows it."""

    oauth2_adapter_class = Protocol

    def redirect(self, request: HttpRequest, process: str, next_url: Any = None, data: Any = None, **_: Any) -> Any:
        """Lead to the provider with a nonce; nothing of the request's own query goes along."""
        nonce = secrets.token_urlsafe(24)
        process = "connect" if process == "connect" and request.user.is_authenticated else "login"
        return super().redirect(request, process, next_url, data, auth_params={"nonce": nonce}, nonce=nonce)


class Callback(OAuth2CallbackView):
    """Takes the provider's answer."""

    def _get_state(self, request: HttpRequest, provider: Any) -> tuple[Any, Any]:
        state, response = super()._get_state(request, provider)
        self.adapter.nonce = (state or {}).get("nonce", "")
        return state, response


class SocialAdapter(DefaultSocialAccountAdapter):
    """Decides whose account it is."""

    def list_apps(self, request: HttpRequest, provider: Any = None, client_id: Any = None) -> list[SocialApp]:
        """List the settings' providers alone: a row in the database makes none."""
        found = _build_apps_from_settings(provider=provider, client_id=client_id)
        return [app for apps in found.values() for app in apps]

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Link an account where that is allowed, and refuse anybody who has none and gets none."""
        claims, provider = claims_of(sociallogin.account), provider_of(sociallogin.account.provider)
        sociallogin.email_addresses = []  # an account has one address, which is in its own row
        if sociallogin.state.get("process") == "connect":
            raise ImmediateHttpResponse(_linked(request, sociallogin))
        if not sociallogin.is_existing:
            owner = _owner(verified_email(claims), provider) if provider.links else None
            if owner is None and not provider.creates:
                _refuse(request, provider, sociallogin)
            if owner is not None:
                _link(request, sociallogin, owner)
                return
        sociallogin.user.email = sociallogin.user.email if sociallogin.is_existing else verified_email(claims)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Tell whether the provider's people get accounts."""
        return provider_of(sociallogin.account.provider).creates

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        """Make the account, with its event. A name that people may not give themselves is left out."""
        user = sociallogin.user
        user.first_name, user.last_name = map(names.normal_form, (user.first_name, user.last_name))
        with transaction.atomic():
            if names.fault(User(), first_name=user.first_name, last_name=user.last_name):
                user.first_name = user.last_name = ""
            made: User = super().save_user(request, sociallogin, form)
            _record("user.linked", made, request, provider=sociallogin.account.provider, created=True)
        return made

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, exception: Exception | None = None, **_: Any
    ) -> None:
        """Say in our own words that nobody was signed in, and log why."""
        log.warning("provider.refused", provider=provider.app.provider_id, reason=str(exception or ""))
        raise ImmediateHttpResponse(_failed(request, provider.app.provider_id))


@login_not_required
def login(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Lead to the provider by a page: a form that redirected to another site would break the content policy."""
    known_or_404(provider_id)
    if request.method != "POST":
        raise Http404
    if request.GET.get("process") == "connect":
        return require_confirmation(_leave)(request, provider_id)
    return _leave(request, provider_id)


def _leave(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    try:
        answer: HttpResponseBase = OAuth2LoginView.adapter_view(Protocol(request, provider_id))(request)
    except (OAuth2Error, RequestException):
        log.exception("provider.failed", provider=provider_id)
        return _failed(request, provider_id)
    if answer.status_code != 302:
        return answer
    going = {"to": answer["Location"], "label": provider_of(provider_id).label}
    response = render(request, "account/provider/going.html", going)
    response["Cache-Control"] = "no-store"
    return response


@login_not_required
@never_cache
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Take the provider's answer, and sign the person in."""
    known_or_404(provider_id)
    answer: HttpResponse = Callback.adapter_view(Protocol(request, provider_id))(request)
    return answer


def provider_of(name: str) -> Provider:
    """Return the provider of the settings."""
    found: Provider = settings.HOLDPOINT_OIDC[name]
    return found


def known_or_404(name: str) -> None:
    """Raise 404 for a provider that the settings do not name."""
    if name not in settings.HOLDPOINT_OIDC:
        raise Http404("No such provider")


def claims_of(account: SocialAccount) -> Mapping[str, Any]:
    """Return what the provider said of a person: the profile, and the id token where that says nothing.

    An address and whether it was verified are of one source: one of them does not speak of the other's address.
    """
    claims = account.extra_data
    values, profile = claims.get("id_token") or {}, claims.get("userinfo") or {}
    if "email" in profile or "email_verified" in profile:
        values = {name: value for name, value in values.items() if name not in ("email", "email_verified")}
    return {**values, **profile}


def signed_in(request: HttpRequest, login: SocialLogin) -> None:
    """Give and take teams at a sign-in by a provider; note where its word counts as a second factor."""
    provider = provider_of(login.account.provider)
    apply_claims(login.user, claims_of(login.account), provider)
    if provider.vouches:
        request.session[required.TRUSTED] = True


def accounts_of(email: str) -> list[User]:
    """List the active accounts that have this address, whose owner may be let into them.

    In most locales the database holds letters to be the same that are not: a dotless i is an I to it. Whoever has the
    mailbox of such an address would be sent the link to another's account (CVE-2019-19844), so only the case of ASCII
    is overlooked.
    """
    found = User.objects.filter(email__iexact=email, is_active=True) if email else []
    return [user for user in found if is_same_address(user.email, email)]


def is_same_address(address: str, other: str) -> bool:
    return address == other or (address.isascii() and other.isascii() and address.lower() == other.lower())


def _owner(email: str, provider: Provider) -> User | None:
    """Return the one account of a verified address that may be linked by it: no administrator's, and none linked."""
    found = accounts_of(email)
    if len(found) != 1 or found[0].is_staff or found[0].is_superuser:
        return None
    linked = SocialAccount.objects.filter(user=found[0], provider=provider.name).exists()
    return None if linked else found[0]


def _failed(request: HttpRequest, name: str) -> HttpResponse:
    return render(request, "account/provider/failed.html", {"label": provider_of(name).label}, status=403)


def _linked(request: HttpRequest, login: SocialLogin) -> HttpResponse:
    """Link the account of whoever is signed in, who has to have confirmed who they are, and lead back."""
    owner = request.user
    if not isinstance(owner, User) or is_reauthentication_required(request, app="allauth.mfa"):
        return _failed(request, login.account.provider)
    if not login.is_existing:
        _link(request, login, owner)
    elif login.user != owner:
        label = provider_of(login.account.provider).label
        return render(request, "account/provider/taken.html", {"label": label}, status=409)
    return redirect("mfa_index")


def _link(request: HttpRequest, login: SocialLogin, owner: User) -> None:
    with transaction.atomic():
        login.connect(request, owner)
        _record("user.linked", owner, request, provider=login.account.provider)


def _refuse(request: HttpRequest, provider: Provider, login: SocialLogin) -> NoReturn:
    address = client_address(request)
    data = {"provider": provider.name, "address": address}
    event_log.record("user.sign_in_unknown", subject=f"address:{address}", by=actors.SYSTEM, data=data)
    page = render(request, "account/provider/unknown.html", {"label": provider.label}, status=403)
    raise ImmediateHttpResponse(page)


def _record(kind: str, user: User, request: HttpRequest, **data: Any) -> None:
    values = {**data, "address": client_address(request)}
    event_log.record(kind, subject=f"user:{user.pk}", by=actors.of_user(user), data=values)


def read_claim(claim: Any) -> Set[str]:
    """Return the values of a claim: a list of texts, or one text; anything else says nothing."""
    if isinstance(claim, str):
        return {claim}
    return {word for word in claim if isinstance(word, str)} if isinstance(claim, list) else set()


def verified_email(claims: Mapping[str, Any]) -> str:
    """Return the e-mail address that the provider says it verified; "" for any other.

    Only the boolean counts: a text "false" is true to Python.
    """
    email = claims.get("email")
    return email if isinstance(email, str) and claims.get("email_verified") is True else ""


@transaction.atomic
def apply_claims(user: User, claims: Mapping[str, Any], provider: Provider) -> None:
    """Give and take the teams and marks that the settings map, with one event where anything changes."""
    names, managed_names = read_claim(claims.get(provider.claim)), frozenset(provider.groups.values())
    wanted = {team for value, team in provider.groups.items() if value in names}
    locked = User.objects.select_for_update().get(pk=user.pk)
    managed = {group.name: group for group in Group.objects.filter(name__in=managed_names)}
    for missing in sorted(managed_names - set(managed)):
        log.warning("provider.unknown_team", provider=provider.name, team=missing)
    mine = set(locked.groups.values_list("pk", flat=True))
    joined = {group.pk for name, group in managed.items() if name in wanted} - mine
    left = {group.pk for name, group in managed.items() if name not in wanted} & mine
    mapped = {"is_staff": provider.staff, "is_superuser": provider.superusers}  # without values a mark is not managed
    marks = {name: bool(names & theirs) for name, theirs in mapped.items() if theirs}
    fields = [name for name, value in marks.items() if getattr(locked, name) is not value]
    if not (joined or left or fields):
        return
    locked.groups.add(*joined)
    locked.groups.remove(*left)
    for name in fields:
        setattr(locked, name, marks[name])
        setattr(user, name, marks[name])
    locked.save(update_fields=fields)
    data = {
        "fields": fields, "joined": sorted(joined), "left": sorted(left), "granted": [], "revoked": [],
        "provider": provider.name,
    }  # fmt: skip
    event_log.record("user.changed", subject=f"user:{user.pk}", by=actors.SYSTEM, data=data)
