"""The simplest possible live socket with Channels: one group, to which every message is repeated."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from channels.generic.websocket import AsyncJsonWebsocketConsumer  # noqa: E402
from channels.routing import URLRouter  # noqa: E402
from django.urls import path  # noqa: E402


class Bare(AsyncJsonWebsocketConsumer):
    """Sends each message that it receives to everybody."""

    async def connect(self) -> None:
        await self.channel_layer.group_add("all", self.channel_name)
        await self.accept()

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        if "n" in content:
            await self.channel_layer.group_send("all", {"type": "said", "n": content["n"]})

    async def said(self, message: dict[str, Any]) -> None:
        await self.send_json({"n": message["n"], "kind": "said", "cursor": ""})


consumer: Any = Bare.as_asgi()
application = URLRouter([path("ws/", consumer)])
