"""Django's pages under ASGI, each request from its first middleware to its last in one thread.

Every view and every middleware here is synchronous, or can be. Django would go into a thread and back around the view,
and around each middleware that can be either, which together takes longer than to answer for a small part of a page.
"""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase


class Pages(ASGIHandler):
    """Django's handler, which calls its middleware as under WSGI."""

    def load_middleware(self, is_async: bool = False) -> None:
        """Make the chain for a thread, whatever the server is."""
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """The answer, made in the request's own thread."""
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)
