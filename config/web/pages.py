"""Runs Django's pages under ASGI, each request from its first middleware to its last in one thread.

Every view and every middleware here is synchronous, or can be. Django would switch threads around the view, around
each middleware that can be either, and for the signals at the start and the end, which together takes longer than the
answer for a small part of a page. A whole answer is closed before it is sent, so that its connection to the database
does not wait for a slow client.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

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

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer in one visit to the request's thread; a stream takes others, until its client goes away."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        set_script_prefix(get_script_prefix(scope))
        response = await sync_to_async(self._answer, thread_sensitive=True)(scope, body)
        if not response.streaming:
            await self.send_response(response, send)
            return
        sending = asyncio.ensure_future(self.send_response(response, send))
        leaving = asyncio.ensure_future(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            await sync_to_async(response.close, thread_sensitive=True)()
            body.close()

    def _answer(self, scope: Any, body: Any) -> HttpResponseBase:
        """Return the answer; closed, unless it is a stream."""
        signals.request_started.send(sender=type(self), scope=scope)
        request, refused = self.create_request(scope, body)
        response: Any = refused if request is None else self.get_response(request)
        response._handler_class = type(self)
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        if not response.streaming:
            response.close()
            body.close()
            # A request refers to itself through its user and its messages: it would keep its body, of megabytes, until
            # the next collection of garbage.
            if request is not None:
                vars(request).clear()
        answer: HttpResponseBase = response
        return answer
