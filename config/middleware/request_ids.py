"""Gives each request an id: in the answer's `X-Request-ID`, its log lines, its events and its problem documents.

A trusted proxy's own id is used; from anybody else it could be the id of another's request.
"""

from __future__ import annotations

from uuid import uuid4

import structlog
from django.http import HttpRequest, HttpResponseBase

from approvals.middleware import Respond
from checkpoints import request_ids
from config.web import proxies

HEADER = "X-Request-ID"


def middleware(get_response: Respond) -> Respond:
    """Give the request its id."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        words = request.headers.get(HEADER, "") if proxies.believed(request) else ""
        request_id = words if request_ids.SHAPE.fullmatch(words) else uuid4().hex
        # Bound for longer than this call: Django logs what was refused after the last middleware. A request's context
        # ends with it.
        structlog.contextvars.bind_contextvars(request_id=request_id)
        with request_ids.answering(request_id):
            response = get_response(request)
        response.headers[HEADER] = request_id
        return response

    return respond
