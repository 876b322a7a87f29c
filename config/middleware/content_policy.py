"""Sends the content security policy with every answer that does not bring a narrower one of its own."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from approvals.middleware import Respond

HEADER = "Content-Security-Policy"


def middleware(get_response: Respond) -> Respond:
    """Add the policy; not to Django's pages for developers, whose styles and scripts are inline."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if not (settings.DEBUG and response.status_code in (404, 500)):
            response.headers.setdefault(HEADER, settings.CONTENT_SECURITY_POLICY)
        return response

    return respond
