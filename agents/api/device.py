"""Signing in by a device code, as RFC 8628 has it, but with JSON bodies, and problem documents that have its codes."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, ClassVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from ninja import Router
from pydantic import Field

from agents import device_codes, tokens
from agents.access import address_of
from agents.api.protocol.answers import answer_json
from agents.api.protocol.auth import Bearer, token_of
from agents.api.protocol.limits import AddressThrottle
from agents.api.protocol.schemas import ApiSchema, Order, refuse_unknown
from agents.models import TokenScope
from checkpoints import actors
from checkpoints.postgresql.sql import make_storable
from checkpoints.values.characters import one_line

router = Router(tags=["device"])
SCOPES: dict[str, Any] = {"type": "string", "enum": list(TokenScope.values)}
Scope = Annotated[str, refuse_unknown(*TokenScope.values)]
# For codes fewer than for polls: each is a row.
CODES, POLLS = AddressThrottle("device_codes", 20), AddressThrottle("device_polls", 600)
USER_CODE = "WDJB-MJHT"
DEVICE_CODE = "GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS0I"


class DeviceAsked(Order):
    """A request for a token. The person sees all of it before they confirm."""

    example: ClassVar = {"program": "cli", "machine": "laptop", "scopes": ["gates:read"], "days": 30}

    program: str = Field("holdpoint", min_length=1, max_length=60)
    """The program's name."""
    machine: str = Field("", max_length=100)
    """The machine's name."""
    scopes: list[Scope] = Field(min_length=1, max_length=len(TokenScope), json_schema_extra={"items": SCOPES})
    """The token's scopes."""
    days: int = Field(30, ge=1, le=90)
    """The number of days until the token expires."""


class DeviceCodes(ApiSchema):
    """The two codes of a request. Show the person `user_code` and `verification_uri`, and poll with `device_code`."""

    example: ClassVar = {
        "device_code": DEVICE_CODE, "user_code": USER_CODE,
        "verification_uri": "https://holdpoint.example.com/device/",
        "verification_uri_complete": f"https://holdpoint.example.com/device/?code={USER_CODE}", "expires_in": 600,
        "interval": 5,
    }  # fmt: skip

    device_code: str
    """The program's own code: a secret."""
    user_code: str
    """The code that the person enters."""
    verification_uri: str
    """The page on which they enter it."""
    verification_uri_complete: str
    """The same page with the code filled in."""
    expires_in: int
    """The number of seconds for which the codes are valid."""
    interval: int
    """The number of seconds to wait between two polls."""


class DevicePoll(Order):
    """One poll."""

    example: ClassVar = {"device_code": DEVICE_CODE}

    device_code: str = Field(min_length=1, max_length=100)
    """The program's code."""


class DeviceToken(ApiSchema):
    """A token, shown this once."""

    example: ClassVar = {
        "access_token": "hp_…", "token_type": "Bearer", "expires_in": 2_592_000, "scope": "gates:read",
        "user": "Ann Okafor",
    }  # fmt: skip

    access_token: str
    """The token: a secret."""
    token_type: str
    """Always Bearer."""
    expires_in: int
    """The number of seconds until it expires."""
    scope: str
    """Its scopes, separated by spaces."""
    user: str
    """The name of the person whose token it is."""


class RevokedToken(ApiSchema):
    """A token that was revoked."""

    example: ClassVar = {"revoked": True}

    revoked: bool
    """Always true: the token is not valid any more."""


@router.post("/codes", response={201: DeviceCodes}, summary="Ask for a token by a code", auth=None, throttle=CODES)
def make_device_codes(request: HttpRequest, asked: DeviceAsked) -> HttpResponse:
    """Make the codes by which a person can give your program a token. Send no token for this.

    The person confirms the request in a browser in which they are signed in.
    """
    made, device, user = device_codes.begin(
        program=one_line(make_storable(asked.program), 60), machine=one_line(make_storable(asked.machine), 100),
        scopes=asked.scopes, lasts=timedelta(days=asked.days), address=address_of(request)[:60],
    )  # fmt: skip
    page = str(settings.HOLDPOINT_ORIGINS[0]).rstrip("/") + reverse("device")
    codes = DeviceCodes(
        device_code=device, user_code=user, verification_uri=page, verification_uri_complete=f"{page}?code={user}",
        expires_in=int(device_codes.LASTS.total_seconds()), interval=int(made.interval.total_seconds()),
    )  # fmt: skip
    return answer_json(codes, http_status=201)


@router.post("/tokens", response={201: DeviceToken}, summary="Collect the token", auth=None, throttle=POLLS)
def collect_device_token(request: HttpRequest, asked: DevicePoll) -> HttpResponse:
    """Return the token once the person has confirmed the code; until then the answer is 400.

    Its `code` is `authorization_pending` or `slow_down`: ask again; `access_denied`, `expired_token` or
    `invalid_grant`: do not. A token can be collected once.
    """
    token, sent = device_codes.collect(asked.device_code)
    left = int((token.expires_at - timezone.now()).total_seconds())
    result = DeviceToken(
        access_token=sent, token_type="Bearer", expires_in=left, scope=" ".join(token.scopes),  # noqa: S106 - its type
        user=actors.of_user(token.user).name,
    )  # fmt: skip
    return answer_json(result, http_status=201)


@router.post("/revocations", response=RevokedToken, summary="Revoke the token that is sent", auth=Bearer(None))
def revoke_device_token(request: HttpRequest) -> HttpResponse:
    """Revoke the very token that this request carries, whatever its scopes are."""
    if token := token_of(request):
        tokens.revoke(token, by=token.actor)
    return answer_json(RevokedToken(revoked=True))
