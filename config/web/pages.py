"""Runs Django's pages under ASGI, each request from its first middleware to its last in one thread.

Every view and every middleware here is synchronous, or can be. Django would switch threads around the view, and around
each middleware that can be either, which together takes longer than the answer for a small part of a page.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase

KEPT = 32  # idle threads


class PagesHandler(ASGIHandler):
    """Django's ASGI handler, which calls its middleware as under WSGI."""

    def __init__(self) -> None:
        super().__init__()
        self._idle: list[ThreadPoolExecutor] = []  # of one thread each

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer in a reused thread: to start and end one for each request takes longer than most answers."""
        try:
            thread = self._idle.pop()
        except IndexError:
            thread = ThreadPoolExecutor(1, thread_name_prefix="pages")
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self.handle(scope, receive, send)
        finally:
            thread.submit(self._rest, thread)  # in the thread itself: a client that went away may have left it at work

    def _rest(self, thread: ThreadPoolExecutor) -> None:
        if len(self._idle) < KEPT:
            self._idle.append(thread)
        else:
            thread.shutdown(wait=False)

    def load_middleware(self, is_async: bool = False) -> None:
        """Build the middleware chain for a thread, also under ASGI."""
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """Answer in the request's own thread."""
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)
