"""An open socket without a server: channels' own one for tests needs a web server that is not used here."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any

from asgiref.testing import ApplicationCommunicator

from approvals.live.consumer import LiveConsumer
from approvals.sessions import SessionStore
from tests.harness.waiting import PATIENCE


class Socket:
    """One page's socket, with a session."""

    def __init__(self, consumer: type[LiveConsumer], query: str, session: SessionStore) -> None:
        scope = {"type": "websocket", "path": "/ws/", "query_string": query.encode(), "headers": [], "session": session}
        self.consumer = consumer()
        untyped: Any = ApplicationCommunicator
        self.wire = untyped(self.consumer, scope)

    async def open(self) -> None:
        await self.wire.send_input({"type": "websocket.connect"})
        assert (await self.wire.receive_output(PATIENCE))["type"] == "websocket.accept"

    async def say(self, content: Any) -> None:
        await self.wire.send_input({"type": "websocket.receive", "text": json.dumps(content)})

    async def hear(self) -> dict[str, Any]:
        said = await self.wire.receive_output(PATIENCE)
        assert said["type"] == "websocket.send", said
        content: dict[str, Any] = json.loads(said["text"])
        return content

    async def hear_all(self) -> list[dict[str, Any]]:
        """Everything that the server says of what has reached it: a mark behind that ends it."""
        mark = secrets.randbits(48)
        await self.consumer.channel_layer.send(self.consumer.channel_name, {"type": "looked", "number": mark})
        found = []
        while (said := await self.hear()).get("subject") != f"looking:{mark}":
            found.append(said)
        return found

    async def closed_with(self) -> int:
        async with asyncio.timeout(PATIENCE):
            while (said := await self.wire.receive_output(PATIENCE))["type"] != "websocket.close":
                pass
        return int(said["code"])

    async def close(self) -> None:
        await self.wire.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wire.wait(PATIENCE)
