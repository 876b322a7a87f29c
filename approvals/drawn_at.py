"""Where a page's live feed starts: at what was there before anything of the page was read.

A view reads what it shows before its template is rendered. A cursor that was read only then would lie after facts
that the page does not show, and nobody would ever tell it of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from . import frames

Respond = Callable[[HttpRequest], Any]  # an HttpResponseBase, or an awaitable of one


@sync_and_async_middleware
def middleware(get_response: Respond) -> Respond:
    """Reads the frame of whole pages of people who may be signed in; fragments start no feed."""

    def sync(request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if _starts_a_feed(request):
            _note(request)
        return get_response(request)  # type: ignore[no-any-return]

    async def asynchronous(request: HttpRequest) -> HttpResponseBase:
        if _starts_a_feed(request):
            await sync_to_async(_note)(request)
        return await get_response(request)  # type: ignore[no-any-return]

    return asynchronous if iscoroutinefunction(get_response) else sync


def _starts_a_feed(request: HttpRequest) -> bool:
    fragment = request.headers.get("HX-Request") == "true"
    return settings.SESSION_COOKIE_NAME in request.COOKIES and request.accepts("text/html") and not fragment


def _note(request: HttpRequest) -> None:
    frames.of(request)
