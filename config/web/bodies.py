"""Limits the size of request bodies before Django reads them.

Django writes a body to the disk before it checks who sent it, so a stranger could fill the disk.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from config.web.static import Receive, Scope, Send

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class TooMuchSent(NamedTuple):
    """The answer to a body that is too large."""

    media_type: str
    body: bytes


def in_words(scope: Scope) -> TooMuchSent:
    """Return the answer for people, as plain text, that the body is too large."""
    return TooMuchSent("text/plain; charset=utf-8", b"This request is too large.\n")


class BoundedBodies:
    """An ASGI application that takes bodies of at most `most` bytes; a longer one is answered with 413."""

    def __init__(
        self, application: Application, *, most: int, refusal_for: Callable[[Scope], TooMuchSent] = in_words
    ) -> None:
        self.application, self.most, self.refusal_for = application, most, refusal_for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; once more comes than is allowed, the application sees a disconnect."""
        if announced(scope) > self.most:
            await refuse(send, self.refusal_for(scope))
            return
        taken, answered = 0, False

        async def bounded() -> Mapping[str, Any]:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            return message if taken <= self.most else {"type": "http.disconnect"}

        async def noting(message: Mapping[str, Any]) -> None:
            nonlocal answered
            answered = True
            await send(message)

        await self.application(scope, bounded, noting)
        if taken > self.most and not answered:
            await refuse(send, self.refusal_for(scope))


class PrefixRoute:
    """An ASGI application that passes requests under `prefix` to one application, and all others to another."""

    def __init__(self, prefix: str, inside: Application, *, outside: Application) -> None:
        self.prefix, self.inside, self.outside = prefix, inside, outside

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        await (self.inside if scope["path"].startswith(self.prefix) else self.outside)(scope, receive, send)


def announced(scope: Scope) -> int:
    """Return the Content-Length; 0 where there is none, as with a body in chunks."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length) if length.isdigit() and len(length) < 20 else 0


async def refuse(send: Send, refusal: TooMuchSent) -> None:
    """Answer 413 and close: the rest of the body is not read."""
    headers = [
        (b"content-type", refusal.media_type.encode()),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.body})
