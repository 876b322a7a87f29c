"""`holdpoint login` and `logout`: a token by a code (RFC 8628) that the person confirms in a browser; none is typed."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from ..answers import Answer
from ..drivers import Threads
from ..errors import BadToken, NotConfigured, Problem
from ..sending import Api, Habits, Op, Pause, Request, encode_body
from . import credentials
from .command_line import DONE, Wrong, make_parser, open_connection, parse_and_run
from .lines import BOLD, HOLD, SOFT, Span, make_line, write_lines

LOCAL = ("127.0.0.1", "localhost", "::1")
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
    user: str


class NotGranted(NotConfigured):
    """Nobody gave the program a token; the sentence says why."""


def log_in(arguments: Sequence[str]) -> int:
    parser = make_parser("login", "Get a token of your own for this terminal. You confirm it in the browser.")
    parser.add_argument("url", nargs="?", default="", help="the server, as https://holdpoint.example.com")
    parser.add_argument("--scope", action="append", default=[], help=f"instead of {', '.join(SCOPES)}")
    parser.add_argument("--plain-http", action="store_true", help="also to a server elsewhere without encryption")
    parser.add_argument("--days", type=int, default=30, help="until the token expires, 90 at most (30)")
    return parse_and_run(_log_in, parser, arguments)


def _log_in(given: argparse.Namespace) -> int:
    url = given.url or given.server or os.environ.get("HOLDPOINT_URL", "")
    if not url:
        raise Wrong("say which server: holdpoint login https://…")
    url = credentials.address(url)
    if url.startswith("http://") and urlsplit(url).hostname not in LOCAL and not given.plain_http:
        raise Wrong(
            f"{url} is not encrypted: others on the way could read the token, or have you confirm a code of theirs. "
            "Use https://…, or say --plain-http"
        )
    threads = Threads(url, "")
    try:
        api = Api(Habits(patience=30.0))
        granted = threads.run(signed_in(api, _show, scopes=given.scope or SCOPES, days=given.days))
    finally:
        threads.close()
    place = credentials.keep(credentials.Server(url, granted.access_token, granted.user))
    days = granted.expires_in // 86_400
    lines = [make_line("Signed in as ", Span(granted.user, BOLD), f" for {days} days. The token is in {place}.")]
    if os.environ.get("HOLDPOINT_TOKEN"):
        lines.append(make_line(Span("HOLDPOINT_TOKEN is set and comes first: unset it to use this token.", HOLD)))
    write_lines(lines, sys.stderr)
    return DONE


def _show(codes: Codes) -> None:
    minutes = codes.expires_in // 60
    lines = [
        make_line("Open   ", Span(codes.verification_uri, BOLD)),
        make_line("enter  ", Span(codes.user_code, BOLD)),
        make_line(Span(f"or open {codes.verification_uri_complete}", SOFT)),
        make_line(Span(f"It is valid for {minutes} minutes. Waiting for you to confirm it there …", SOFT)),
    ]
    write_lines(lines, sys.stderr)
    sys.stderr.flush()


def signed_in(api: Api, show: Callable[[Codes], None], *, scopes: Sequence[str], days: int) -> Op[Granted]:
    """Ask for codes, show them, and poll until the person has confirmed. Raises NotGranted."""
    body = {"program": "holdpoint", "machine": socket.gethostname()[:100], "scopes": list(scopes), "days": days}
    codes = Codes.model_validate((yield from _post(api, "device/codes", body)))
    show(codes)
    wait, until = codes.interval, api.habits.clock() + codes.expires_in
    while api.habits.clock() + wait < until:
        yield Pause(wait)
        try:
            document = yield from _post(api, "device/tokens", {"device_code": codes.device_code})
        except Problem as refused:
            if refused.code == "slow_down":
                wait += SLOWER
            elif refused.code != "authorization_pending":
                raise NotGranted(refused.detail) from refused
        else:
            return Granted.model_validate(document)
    raise NotGranted("Nobody confirmed the code in time. Run `holdpoint login` again.")


def log_out(arguments: Sequence[str]) -> int:
    return parse_and_run(
        _log_out, make_parser("logout", "Revoke the token of this terminal, and remove it."), arguments
    )


def _log_out(given: argparse.Namespace) -> int:
    if os.environ.get("HOLDPOINT_TOKEN"):  # perhaps an agent's, which would stop
        raise Wrong("HOLDPOINT_TOKEN is set, and is not what login stored: unset it to sign out")
    words = "The token is revoked.\n"
    with open_connection(given.server) as (api, threads, server):
        try:
            threads.run(_post(api, "device/revocations", {}))
        except BadToken:
            words = "The token was not valid any more.\n"
        credentials.forget(server.url)
    sys.stderr.write(words)
    return DONE


def _post(api: Api, path: str, body: dict[str, object]) -> Op[object]:
    return api.sent(Request("POST", path, body=encode_body(body)))
