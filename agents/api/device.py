"""Signing in by a device code, as RFC 8628 has it, but with JSON bodies, and problem documents that have its codes."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from ninja import Router, Schema
from pydantic import Field

from agents import device_codes, tokens
from agents.models import TokenScope
from agents.queries.access import address_of
from agents.text import one_line
from checkpoints import actors
from checkpoints.postgresql.sql import storable

from .protocol import answer, known, token_of
from .protocol.auth import AnyToken
from .protocol.throttling import AddressThrottle
from .runs.moves import Order

router = Router(tags=["device"])
Scope = Annotated[str, known(*TokenScope.values)]
# For codes fewer than for polls: each is a row.
CODES, POLLS = AddressThrottle("device_codes", 20), AddressThrottle("device_polls", 600)
USER_CODE = "WDJB-MJHT"
DEVICE_CODE = "GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS0I"


class DeviceAsked(Order):
    """A request for a token. The person sees all of it before they confirm."""

    program: str = Field("holdpoint", description="The program's name.", min_length=1, max_length=60, examples=["cli"])
    machine: str = Field("", description="The machine's name.", max_length=100, examples=["laptop"])
    scopes: list[Scope] = Field(
        description="The token's scopes.", min_length=1, max_length=len(TokenScope), examples=[["gates:read"]],
        json_schema_extra={"items": {"type": "string", "enum": list(TokenScope.values)}},
    )  # fmt: skip
    days: int = Field(30, description="The number of days until the token expires.", ge=1, le=90, examples=[30])


class DeviceCodes(Schema):
    """The two codes of a request. Show the person `user_code` and `verification_uri`, and poll with `device_code`."""

    device_code: str = Field(description="The program's own code: a secret.", examples=[DEVICE_CODE])
    user_code: str = Field(description="The code that the person enters.", examples=[USER_CODE])
    verification_uri: str = Field(
        description="The page on which they enter it.", examples=["https://holdpoint.example.com/device/"]
    )
    verification_uri_complete: str = Field(
        description="The same page with the code filled in.",
        examples=[f"https://holdpoint.example.com/device/?code={USER_CODE}"],
    )
    expires_in: int = Field(description="The number of seconds for which the codes are valid.", examples=[600])
    interval: int = Field(description="The number of seconds to wait between two polls.", examples=[5])


class DevicePoll(Order):
    """One poll."""

    device_code: str = Field(description="The program's code.", min_length=1, max_length=100, examples=[DEVICE_CODE])


class DeviceToken(Schema):
    """A token, shown this once."""

    access_token: str = Field(description="The token: a secret.", examples=["hp_…"])
    token_type: str = Field(description="Always Bearer.", examples=["Bearer"])
    expires_in: int = Field(description="The number of seconds until it expires.", examples=[2_592_000])
    scope: str = Field(description="Its scopes, separated by spaces.", examples=["gates:read"])
    user: str = Field(description="The name of the person whose token it is.", examples=["Ann Okafor"])


class RevokedToken(Schema):
    """A token that was revoked."""

    revoked: bool = Field(description="Always true: the token is not valid any more.", examples=[True])


@router.post("/codes", response={201: DeviceCodes}, summary="Ask for a token by a code", auth=None, throttle=CODES)
def make_device_codes(request: HttpRequest, asked: DeviceAsked) -> HttpResponse:
    """Make the codes by which a person can give your program a token. Send no token for this.

    The person confirms the request in a browser in which they are signed in.
    """
    made, device, user = device_codes.begin(
        program=one_line(storable(asked.program), 60), machine=one_line(storable(asked.machine), 100),
        scopes=asked.scopes, lasts=timedelta(days=asked.days), address=address_of(request)[:60],
    )  # fmt: skip
    page = str(settings.HOLDPOINT_ORIGINS[0]).rstrip("/") + reverse("device")
    codes = DeviceCodes(
        device_code=device, user_code=user, verification_uri=page, verification_uri_complete=f"{page}?code={user}",
        expires_in=int(device_codes.LASTS.total_seconds()), interval=int(made.interval.total_seconds()),
    )  # fmt: skip
    return answer(codes, http_status=201)


@router.post("/tokens", response={201: DeviceToken}, summary="Collect the token", auth=None, throttle=POLLS)
def collect_device_token(request: HttpRequest, asked: DevicePoll) -> HttpResponse:
    """Return the token once the person has confirmed the code; until then the answer is 400.

    Its `code` is `authorization_pending` or `slow_down`: ask again; `access_denied`, `expired_token` or
    `invalid_grant`: do not. A token can be collected once.
    """
    token, sent = device_codes.collect(asked.device_code)
    left = int((token.expires_at - timezone.now()).total_seconds())
    told = DeviceToken(
        access_token=sent, token_type="Bearer", expires_in=left, scope=" ".join(token.scopes),  # noqa: S106 - its type
        user=actors.of_user(token.user).name,
    )  # fmt: skip
    return answer(told, http_status=201)


@router.post("/revocations", response=RevokedToken, summary="Revoke the token that is sent", auth=AnyToken())
def revoke_device_token(request: HttpRequest) -> HttpResponse:
    """Revoke the very token that this request carries, whatever its scopes are."""
    if token := token_of(request):
        tokens.revoke(token, by=token.actor)
    return answer(RevokedToken(revoked=True))
