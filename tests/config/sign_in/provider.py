"""A provider of single sign-on as a process of its own: oidc-provider-mock, which stands on Authlib, and asks for PKCE.

`PUT /users/<sub>` sets what it says of a person; claims such as "nonce" replace those of the protocol in the id token.
"""

from __future__ import annotations

import hashlib
import sys
from base64 import urlsafe_b64encode
from typing import Any
from urllib.parse import parse_qs, urlsplit

import uvicorn
from asgiref.wsgi import WsgiToAsgi
from flask import Response, abort, request
from oidc_provider_mock import app


def make() -> Any:
    """Build the application: a code is exchanged only for the verifier of its challenge."""
    provider, challenges = app(require_nonce=True), {}

    @provider.after_request  # type: ignore[untyped-decorator]
    def remember(response: Response) -> Response:
        codes = parse_qs(urlsplit(response.headers.get("Location", "")).query).get("code", [])
        for code in codes:
            challenges[code] = request.args.get("code_challenge", "")
        return response

    @provider.before_request  # type: ignore[untyped-decorator]
    def verify() -> None:
        if request.path == "/oauth2/token":
            digest = hashlib.sha256(request.form.get("code_verifier", "").encode()).digest()
            if challenges.get(request.form["code"]) != urlsafe_b64encode(digest).decode().rstrip("="):
                abort(400)

    return provider


if __name__ == "__main__":
    served = WsgiToAsgi(make())  # type: ignore[no-untyped-call]
    uvicorn.run(served, port=int(sys.argv[1]), log_level="warning")
