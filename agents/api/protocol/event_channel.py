"""Listens to the events that the tailer sends to this process, on a channel of its layer, for a request that waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from channels.layers import get_channel_layer

from approvals.live.channel_layer import WAITING, PageLayer


class Ear:
    """A channel of the process's layer, and the groups that it listens to."""

    def __init__(self, layer: PageLayer, channel: str) -> None:
        self.layer, self.channel = layer, channel
        self.groups: set[str] = set()

    async def join(self, groups: list[str]) -> bool:
        """Listen to these groups; return whether one of them is new."""
        new = set(groups) - self.groups
        for group in new:
            await self.layer.group_add(WAITING + group, self.channel)
        self.groups |= new
        return bool(new)

    async def hears(self, gone: asyncio.Future[bool], until: float) -> bool:
        """Wait for an event and drain the channel; return False where the client went away or `until` has passed."""
        future: asyncio.Future[Any] = asyncio.ensure_future(self.layer.receive(self.channel))
        try:
            left = until - asyncio.get_running_loop().time()
            await asyncio.wait({future, gone}, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED)
            heard = future.done() and not gone.done()
        finally:
            future.cancel()
        self.layer.drain(self.channel)
        return heard


@asynccontextmanager
async def listen_to(groups: list[str]) -> AsyncIterator[Ear]:
    layer = get_channel_layer()
    if not isinstance(layer, PageLayer):
        raise TypeError("Requests that wait listen to the process's own channel layer.")
    ear = Ear(layer, await layer.new_channel("waiting"))
    try:
        await ear.join(groups)
        yield ear
    finally:
        for group in ear.groups:
            await layer.group_discard(WAITING + group, ear.channel)
        layer.forget(ear.channel)
