"""Serves MCP at /mcp (Streamable HTTP, without sessions): Holdpoint's tools for any MCP client.

The tools call this process's own API, over ASGI and without a socket, with the caller's token and address. So every
rule about authority, policies, pace and limits is the API's, and a call that waits for people holds neither a thread
nor a connection to the database (agents/api/protocol/waiting.py).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from django.conf import settings
from holdpoint import AsyncHoldpoint
from holdpoint.mcp.asking import Limits
from holdpoint.mcp.server import Context, build_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import PARSE_ERROR

from checkpoints.errors import ValueRefused
from checkpoints.values.canonical_json import parse_json
from config.web.static import Receive, Scope, Send
from config.web.wire import Application

SENT = ("authorization", "x-forwarded-for", "x-forwarded-proto", "x-request-id")  # of the caller's headers, to the API
CHECKED = "/api/tools?limit=1"  # asks the API whether it knows the token; the answer is not read
Headers = Mapping[str, str]


class McpEndpoint:
    """An ASGI application that answers MCP clients by the API of `application`."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.limits = Limits(settings.HOLDPOINT_MCP_WAIT)
        self.sessions: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests, inside."""
        served = build_server(self.connect, self.limits)
        self.sessions = StreamableHTTPSessionManager(
            served, json_response=True, stateless=True, max_request_body_size=settings.HOLDPOINT_API_BODY_LIMIT
        )
        async with self.sessions.run():
            yield

    def leave(self) -> None:
        """Answer every call that waits for people: they have not decided yet."""
        self.limits.leave()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, if its origin, its method and its token are in order."""
        headers = headers_of(scope)
        if "origin" in headers and headers["origin"] not in settings.HOLDPOINT_ORIGINS:
            await answer(send, 403, {"error": "forbidden", "error_description": "A page of another site sent this."})
            return
        if scope["method"] != "POST" or self.sessions is None:
            await answer(send, 405, {"error": "method_not_allowed"}, {"allow": "POST"})
            return
        refusal = await self.refusal(scope, headers)
        if refusal is not None:
            await answer(send, *refusal)
            return
        body = await read(receive)
        if body is None:
            return
        try:
            parse_json(body)
        except ValueRefused as error:
            words = f"The body cannot be read: {error}"
            await answer(send, 400, {"jsonrpc": "2.0", "id": None, "error": {"code": PARSE_ERROR, "message": words}})
            return
        whole: Any = again(body, receive)
        await self.sessions.handle_request(scope, whole, send)

    async def refusal(self, scope: Scope, headers: Headers) -> tuple[int, dict[str, Any], Headers] | None:
        """Return the answer to a request that is not let in, as RFC 6750 has it; None where its token is valid."""
        if not headers.get("authorization", "").lower().startswith("bearer "):
            return unauthorized("invalid_request", "Send a token as Authorization: Bearer hp_…")
        async with httpx.AsyncClient(transport=Inside(self.application, scope), base_url=base_of(scope)) as client:
            found = await client.get(CHECKED)
        if found.status_code == 401:
            return unauthorized("invalid_token", "The token is not valid: unknown, expired or revoked.")
        if found.status_code in (200, 403):  # without a scope for this, it may have others
            return None
        kept = {name: found.headers[name] for name in ("retry-after",) if name in found.headers}
        values = found.json() if "json" in found.headers.get("content-type", "") else {}
        return found.status_code, {"error": "refused", "error_description": values.get("detail", "")}, kept

    @asynccontextmanager
    async def connect(self, context: Context) -> AsyncIterator[AsyncHoldpoint]:
        """Yield a client of the API for one call, with the token that it came with."""
        request: Any = context.request  # Starlette's: this transport always has one
        scope: Scope = request.scope
        token = headers_of(scope)["authorization"].partition(" ")[2].strip()
        inside = Inside(self.application, scope)
        async with AsyncHoldpoint(base_of(scope), token, patience=self.limits.patient, transport=inside) as hp:
            yield hp


class Inside(httpx.AsyncBaseTransport):
    """Sends a request to this process's own application, as the client of `scope` would."""

    def __init__(self, application: Application, scope: Scope) -> None:
        self.headers = {name: value for name, value in headers_of(scope).items() if name in SENT}
        address = tuple(scope.get("client") or ("", 0))
        self.inner = httpx.ASGITransport(application, raise_app_exceptions=False, client=address)  # type: ignore[arg-type]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers.update(self.headers)
        return await self.inner.handle_async_request(request)


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request by name; of one that came twice, the last."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def base_of(scope: Scope) -> str:
    """Return the address that the client used."""
    return f"{scope.get('scheme', 'http')}://{headers_of(scope).get('host', 'localhost')}"


def unauthorized(error: str, description: str) -> tuple[int, dict[str, Any], Headers]:
    """Return a 401 as MCP clients read it."""
    challenge = f'Bearer realm="Holdpoint", error="{error}", error_description="{description}"'
    return 401, {"error": error, "error_description": description}, {"www-authenticate": challenge.replace("…", "...")}


async def answer(send: Send, status: int, content: Mapping[str, Any], more: Headers | None = None) -> None:
    """Send a JSON answer."""
    headers = {"content-type": "application/json", "cache-control": "no-store", **(more or {})}
    listed = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": json.dumps(content).encode()})


async def read(receive: Receive) -> bytes | None:
    """Return the whole body; None where the client has gone, or it was too long."""
    found = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        found += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(found)


def again(body: bytes, receive: Receive) -> Receive:
    """Return a function that gives the body once more, and then what comes."""
    left = [body]

    async def replayed() -> Mapping[str, Any]:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return replayed
