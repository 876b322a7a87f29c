"""Bodies of requests: how large one may be, and how it is read. Django's own bound is that of its forms.

The web server refuses a longer one while it comes in (config/bodies.py); what no web server stands before is
refused here.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja.errors import HttpError
from ninja.parser import Parser

from checkpoints import request_ids
from checkpoints.values.canonical_json import parse

from . import problems
from .problems import MEDIA_TYPE, Problem, problem

JSON = "application/json"


class NotJson(Exception):
    """A body that says to be of another media type."""


def too_large(path: str) -> bytes:
    """Return the problem document of a 413."""
    most = settings.HOLDPOINT_API_BODY_LIMIT
    told = f"A body has at most {most:,} bytes here. Send a smaller one, or have HOLDPOINT_API_BODY_LIMIT raised."
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    document = Problem(
        title=status.phrase, status=status, detail=told, instance=path, request_id=request_ids.current()
    )  # fmt: skip
    return document.model_dump_json().encode()


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


def unread(request: HttpRequest, error: HttpError) -> HttpResponse:
    """415 for a body of another media type; else as for any body that cannot be read."""
    if not isinstance(error.__cause__, NotJson):
        return problems.unread(request, error)
    kind = (request.content_type or "of no media type")[:100]
    response = problem(request, 415, f"The body is {kind}. Send it as `Content-Type: {JSON}`.")
    response["Accept"] = JSON
    return response
