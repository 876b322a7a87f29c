"""Bodies of requests: how large one may be, and how it is read. Django's own bound is that of its forms.

The web server refuses a longer one while it comes in (config/web/bodies.py); what no web server stands before is
refused here.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja.parser import Parser

from checkpoints.values.canonical_json import parse

from .problems import JSON, MEDIA_TYPE, NotJson, document


def too_large(path: str) -> bytes:
    """Return the problem document of a 413."""
    most = settings.HOLDPOINT_API_BODY_LIMIT
    told = f"A body has at most {most:,} bytes here. Send a smaller one, or have HOLDPOINT_API_BODY_LIMIT raised."
    return document(path, 413, told)


def refused(request: HttpRequest) -> HttpResponse | None:
    """Read the body; 413 where it is longer than is taken."""
    most = settings.HOLDPOINT_API_BODY_LIMIT
    body = request.read(most + 1)
    if len(body) > most:
        return HttpResponse(too_large(request.path), status=413, content_type=MEDIA_TYPE)
    request._body = body
    return None


class ExactParser(Parser):
    """JSON by the rules of saved values: no key twice, no NaN, numbers as they are."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Raises ValueRefused and NotJson."""
        if request.content_type != JSON:
            raise NotJson
        return parse(request.body or b"null")
