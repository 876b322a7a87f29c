"""Limits what a request may bring: the size of its head and its body, and the time until all of it has arrived.

uvicorn's parser keeps a head that never ends, each piece added to a copy of the ones before, and waits for the rest of
a request for as long as its sender likes. `--http config.web.wire:BoundedProtocol` uses this protocol instead. Django
writes a body to the disk before it checks who sent it, so a stranger could fill the disk: `BoundedBodies` limits its
length. Its content is limited by the code that reads it.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from config.web.static import Receive, Scope, Send

MOST_HEADERS = 100
HEAD = 64 * 1024  # bytes of the address and all headers together
PACE = 16 * 1024  # bytes a second of a body that is given more time
Refusal = tuple[str, bytes]  # the media type and the body of an answer
IN_WORDS = "text/plain; charset=utf-8", b"This request is too large.\n"
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
LEAVE = "leave"  # in the server's state: the function to call when it is asked to end


def patience(received: int, *, least: float) -> float:
    """Return the seconds within which a request has to be complete, by the bytes received so far."""
    return least + received / PACE


class _TooLarge(Exception):
    """Raised to end the parsing of a head that is too large."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits on size and time."""

    _late: TimerHandle | None = None  # closes the connection
    _begun = False  # whether some of a request came, and not all
    _came = 0  # bytes since it is waited for
    _unread = 0  # bytes since the parser last made something of them: of a header, a trailer, the length of a chunk
    _refusal = (HTTPStatus.BAD_REQUEST, "Invalid HTTP request received.")

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End the requests that only wait, before the server waits for them."""
        super().shutdown()
        self.app_state[LEAVE]()

    def data_received(self, data: bytes) -> None:
        if self._late is None:
            self._wait()
        self._came += len(data)
        self._unread += len(data)
        super().data_received(data)
        # A head that ends within the bound is measured when it ends, and the answer names the bound.
        if self._unread > 2 * HEAD and not self.transport.is_closing():
            self._refuse(*_too_large())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun = True
        if self._late is None:  # this request came in one piece with the end of the one before
            self._wait()

    def on_headers_complete(self) -> None:
        self._unread = 0
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > HEAD or len(self.headers) > MOST_HEADERS:
            self._refusal = _too_large()
            raise _TooLarge
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unread, self._begun = 0, False
        self._wait_no_more()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser or this protocol refuses."""
        self._refuse(*self._refusal)

    def _wait(self) -> None:
        self._came = 0
        self._late = self.loop.call_later(settings.HOLDPOINT_REQUEST_TIMEOUT, self._look, self.loop.time())

    def _wait_no_more(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _look(self, since: float) -> None:
        """Refuse the request as too late, unless enough bytes came for more time, or this side has paused reading."""
        least = settings.HOLDPOINT_REQUEST_TIMEOUT
        until = since + patience(self._came, least=least)
        if self.flow.read_paused:
            until = self.loop.time() + least
        if until > self.loop.time():
            self._late = self.loop.call_at(until, self._look, since)
            return
        words = f"The whole request has to come within {least:g} s, and a second more for each {PACE // 1024} KB of it."
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, words)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Answer in place of the application and close; if it waits for the rest, it sees a disconnect."""
        cycle = self.cycle
        before = self.pipeline or (cycle and not cycle.response_complete and not cycle.more_body)
        if self._begun and not before and (cycle is None or cycle.response_complete or not cycle.response_started):
            body = f"{message}\n".encode()
            head = (
                f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()


def _too_large() -> tuple[HTTPStatus, str]:
    words = (
        f"A request has at most {MOST_HEADERS} headers, and its address and headers at most {HEAD:,} bytes. Send less."
    )
    return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, words


class BoundedBodies:
    """An ASGI application that takes bodies of at most `most` bytes; a longer one is answered with 413."""

    def __init__(
        self, application: Application, *, most: int, refusal_for: Callable[[str], Refusal] = lambda _: IN_WORDS
    ) -> None:
        self.application, self.most, self.refusal_for = application, most, refusal_for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; once more comes than is allowed, the application sees a disconnect."""
        if announced(scope) > self.most:
            await refuse(send, *self.refusal_for(scope["path"]))
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
            await refuse(send, *self.refusal_for(scope["path"]))


def announced(scope: Scope) -> int:
    """Return the Content-Length; 0 where there is none, as with a body in chunks."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length) if length.isdigit() and len(length) < 20 else 0


async def refuse(send: Send, media_type: str, body: bytes) -> None:
    """Answer 413 and close: the rest of the body is not read."""
    headers = [
        (b"content-type", media_type.encode()),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
