"""Request bodies: their largest size, and how they are parsed. Django's own limit is for forms.

The web server refuses a longer one while it comes in (config/web/wire.py); without a web server in front it is
refused here.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja.parser import Parser

from checkpoints.values.canonical_json import parse_json

from .problem_details import MEDIA_TYPE, encode_problem
from .problems import JSON, NotJson


def too_large(path: str) -> bytes:
    """Return the problem document of a 413."""
    most = settings.HOLDPOINT_API_BODY_LIMIT
    words = f"A body has at most {most:,} bytes here. Send a smaller one, or have HOLDPOINT_API_BODY_LIMIT raised."
    return encode_problem(path, 413, words)


def refused(request: HttpRequest) -> HttpResponse | None:
    """Read the body; return 413 if it is too long."""
    most = settings.HOLDPOINT_API_BODY_LIMIT
    body = request.read(most + 1)
    if len(body) > most:
        return HttpResponse(too_large(request.path), status=413, content_type=MEDIA_TYPE)
    request._body = body
    return None


class ExactParser(Parser):
    """A JSON parser by the rules of saved values: no key twice, no NaN, numbers as they are."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Parse the body. Raises ValueRefused and NotJson."""
        if request.content_type != JSON:
            raise NotJson
        return parse_json(request.body or b"null")
