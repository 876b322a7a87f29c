"""`holdpoint login [URL]`: gets a token by a code that the person confirms in the browser."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from urllib.parse import urlsplit

from ...drivers import Threads
from ...exchange import Habits
from ...sending import Api
from .. import credentials, device_flow, exits
from ..device_flow import Codes
from ..lines import BOLD, HOLD, SOFT, Span, make_line, make_span, render_lines
from .common import Wrong, make_parser, parse_and_run

LOCAL = ("127.0.0.1", "localhost", "::1")


def main(arguments: Sequence[str]) -> int:
    """Sign in."""
    parser = make_parser("login", "Get a token of your own for this terminal. You confirm it in the browser.")
    parser.add_argument("url", nargs="?", default="", help="the server, as https://holdpoint.example.com")
    parser.add_argument("--scope", action="append", default=[], help=f"instead of {', '.join(device_flow.SCOPES)}")
    parser.add_argument("--plain-http", action="store_true", help="also to a server elsewhere without encryption")
    parser.add_argument("--days", type=int, default=30, help="until the token expires, 90 at most (30)")
    return parse_and_run(_login, parser, arguments)


def _login(given: argparse.Namespace) -> int:
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
        asked = device_flow.signed_in(
            Api(Habits(patience=30.0)), _show, scopes=given.scope or device_flow.SCOPES, days=given.days
        )
        got = threads.run(asked)
    finally:
        threads.close()
    place = credentials.keep(credentials.Server(url, got.access_token, got.user))
    days = got.expires_in // 86_400
    lines = [make_line("Signed in as ", make_span(got.user, BOLD), f" for {days} days. The token is in {place}.")]
    if os.environ.get("HOLDPOINT_TOKEN"):
        lines.append(make_line(Span("HOLDPOINT_TOKEN is set and comes first: unset it to use this token.", HOLD)))
    sys.stderr.write(render_lines(lines, colour=sys.stderr.isatty()))
    return exits.DONE


def _show(codes: Codes) -> None:
    lines = [
        make_line("Open   ", make_span(codes.verification_uri, BOLD)),
        make_line("enter  ", make_span(codes.user_code, BOLD)),
        make_line(Span("or open ", SOFT), make_span(codes.verification_uri_complete, SOFT)),
        make_line(
            Span(f"It is valid for {codes.expires_in // 60} minutes. Waiting for you to confirm it there …", SOFT)
        ),
    ]
    sys.stderr.write(render_lines(lines, colour=sys.stderr.isatty()))
    sys.stderr.flush()
