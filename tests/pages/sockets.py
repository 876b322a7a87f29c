"""An open socket without a server: channels' own one for tests needs a web server that is not used here."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from asgiref.testing import ApplicationCommunicator
from django.contrib.sessions.backends.db import SessionStore

from approvals.live import LiveConsumer


class Socket:
    """One page's socket, with a session."""

    def __init__(self, consumer: type[LiveConsumer], query: str, session: SessionStore) -> None:
        scope = {"type": "websocket", "path": "/ws/", "query_string": query.encode(), "headers": [], "session": session}
        untyped: Any = ApplicationCommunicator
        self.wire = untyped(consumer.as_asgi(), scope)

    async def open(self) -> None:
        """Connect."""
        await self.wire.send_input({"type": "websocket.connect"})
        assert (await self.wire.receive_output(5))["type"] == "websocket.accept"

    async def say(self, content: Any) -> None:
        """Send something as a browser would."""
        await self.wire.send_input({"type": "websocket.receive", "text": json.dumps(content)})

    async def hear(self) -> dict[str, Any]:
        """The next thing that the server says."""
        said = await self.wire.receive_output(5)
        assert said["type"] == "websocket.send", said
        content: dict[str, Any] = json.loads(said["text"])
        return content

    async def hear_all(self) -> list[dict[str, Any]]:
        """Everything that the server has said and says within a tenth of a second."""
        found = []
        while not await self.wire.receive_nothing(0.1):
            found.append(await self.hear())
        return found

    async def closed_with(self) -> int:
        """The code with which the server closes the socket."""
        async with asyncio.timeout(5):
            while (said := await self.wire.receive_output(5))["type"] != "websocket.close":
                pass
        return int(said["code"])

    async def close(self) -> None:
        """Go away, as a browser does."""
        await self.wire.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wire.wait(5)
