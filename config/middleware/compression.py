"""Compresses pages but no streams: under ASGI Django makes each piece of a stream a gzip member of its own.

A browser decodes the first member and silently drops the rest, so that an export would end after its first piece.
"""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class CompressedPages(GZipMiddleware):
    """Django's compression, for responses that are no streams."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Compress a response, unless it is a stream."""
        return response if response.streaming else super().process_response(request, response)
