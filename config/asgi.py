"""The ASGI application: static files, Django's pages, the live socket, and the tailer that runs with the process.

The socket compares full origins, letter by letter: a page on another port or over plain HTTP is another site. A request
whose Origin is missing, `null` or cannot be read is refused.
"""

from __future__ import annotations

import asyncio
import gc
import os
from typing import Any

import django
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import OriginValidator, WebsocketDenier
from channels.sessions import SessionMiddlewareStack

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402 - Django must be set up first
from django.urls import get_resolver  # noqa: E402

from agents.api.protocol import limits, problems  # noqa: E402
from agents.api.protocol.waiting import Waiting  # noqa: E402
from agents.definition import registry  # noqa: E402
from approvals.live import consumer  # noqa: E402
from checkpoints.events.tailer import count_by_name  # noqa: E402
from checkpoints.postgresql import fitness  # noqa: E402
from config.web import mcp  # noqa: E402
from config.web.pages import PagesHandler  # noqa: E402
from config.web.static import Receive, Scope, Send, StaticFiles  # noqa: E402
from config.web.wire import LEAVE, BoundedBodies  # noqa: E402


async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    """Start and stop the tailer with the web process; start nothing on a PostgreSQL that is unfit."""
    await receive()
    if unfit := await asyncio.to_thread(fitness.fault):
        await send({"type": "lifespan.startup.failed", "message": unfit})
        return
    scope["state"][LEAVE] = leave
    await asyncio.to_thread(lambda: count_by_name(registry.names()))
    await asyncio.to_thread(load_all)
    async with consumer.reading_along(), tools.running():
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})


def leave() -> None:
    """Answer all requests that only wait, since this process is about to end."""
    tools.leave()
    waiting.leave()


def load_all() -> None:
    """Load all pages, and exempt what is loaded from garbage collections: one that walks all of it takes 0.1 s."""
    _ = get_resolver().url_patterns
    gc.collect()
    gc.freeze()


class FullOrigins(OriginValidator):
    """Checks the origin of a socket by comparing texts; Channels' own check fails on one that is no URL."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on connections from a page of this site."""
        lines = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        ours = len(lines) == 1 and lines[0] in self.allowed_origins
        application: Any = self.application if ours else WebsocketDenier()
        await application(scope, receive, send)


waiting = Waiting(PagesHandler())
files = StaticFiles(prefix=settings.STATIC_URL, root=settings.STATIC_ROOT, debug=settings.DEBUG)
FILES = 4  # of the largest size that one form may bring
FORMS = settings.DATA_UPLOAD_MAX_MEMORY_SIZE + FILES * settings.HOLDPOINT_UPLOAD_LIMIT


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve a static file, or answer by Django."""
    await (files if scope["path"].startswith(settings.STATIC_URL) else waiting)(scope, receive, send)


async def serve_bounded(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve, once the body is within the limit of the API or of the forms."""
    await (api if scope["path"].startswith("/api/") else pages)(scope, receive, send)


async def serve_all(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve MCP clients, and all others."""
    await (mcp_clients if scope["path"].rstrip("/") == "/mcp" else serve_bounded)(scope, receive, send)


api = BoundedBodies(
    serve,
    most=settings.HOLDPOINT_API_BODY_LIMIT,
    refusal_for=lambda path: (problems.MEDIA_TYPE, limits.encode_too_large(path)),
)
pages = BoundedBodies(serve, most=FORMS)
tools = mcp.McpEndpoint(serve_bounded)
mcp_clients = BoundedBodies(tools, most=settings.HOLDPOINT_API_BODY_LIMIT)
application = ProtocolTypeRouter(
    {
        "http": serve_all,
        # Not channels' AuthMiddleware: the socket itself asks whose session it is, at its start and again and again.
        "websocket": FullOrigins(
            SessionMiddlewareStack(URLRouter(consumer.websocket_urlpatterns)), settings.HOLDPOINT_ORIGINS
        ),
        "lifespan": lifespan,
    }
)
