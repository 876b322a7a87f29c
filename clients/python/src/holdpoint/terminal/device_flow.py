"""Gets a token by a code (RFC 8628): the person confirms it in a browser, and no token is typed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

from ..answers import Answer
from ..errors import BadToken, NotConfigured, Problem
from ..exchange import Op, Pause, Request
from ..sending import Api, encode_body

SCOPES = ("runs:read", "gates:read", "gates:decide", "runs:order")
SLOWER = 5.0  # seconds that slow_down adds to the interval


class Codes(Answer):
    """The codes that the server made."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: float


class Granted(Answer):
    """The token."""

    access_token: str
    expires_in: int
    scope: str
    user: str


class NotGranted(NotConfigured):
    """Nobody gave the program a token; the sentence says why."""


def signed_in(
    api: Api, show: Callable[[Codes], None], *, scopes: Sequence[str] = SCOPES, days: int = 30
) -> Op[Granted]:
    """Ask for codes, show them, and poll until the person has confirmed. Raises NotGranted."""
    body = {"program": "holdpoint", "machine": socket.gethostname()[:100], "scopes": list(scopes), "days": days}
    codes = Codes.model_validate((yield from api.sent(_post("device/codes", body))))
    show(codes)
    wait, until = codes.interval, api.habits.clock() + codes.expires_in
    while api.habits.clock() + wait < until:
        yield Pause(wait)
        try:
            document = yield from api.sent(_post("device/tokens", {"device_code": codes.device_code}))
        except Problem as refused:
            if refused.code == "slow_down":
                wait += SLOWER
            elif refused.code != "authorization_pending":
                raise NotGranted(refused.detail) from refused
        else:
            return Granted.model_validate(document)
    raise NotGranted("Nobody confirmed the code in time. Run `holdpoint login` again.")


def revoked(api: Api) -> Op[bool]:
    """Revoke the token itself; False where it is not valid any more."""
    try:
        yield from api.sent(_post("device/revocations", {}))
    except BadToken:
        return False
    return True


def _post(path: str, body: dict[str, object]) -> Request:
    return Request("POST", path, body=encode_body(body))
