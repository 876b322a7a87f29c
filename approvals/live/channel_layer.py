"""Channels' layer inside one process, for some thousand open pages.

The in-memory layer of Channels searches all channels for expired messages whenever one page receives, which for a
thousand pages is a million checks a fact. It copies a message for each page, and silently drops messages that do not
fit or expired, so that a page that stalled would miss facts unnoticed. Here no message expires, all receivers share it,
and a page that fell behind is told so.

Also here: messages to pages that are no events: a number through Redis that says only what to read again.

The rows of each kind are in PostgreSQL, and a page reads them whenever it is drawn. So an outage of Redis delays them
and loses nothing, and whoever can publish learns and changes nothing.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from channels.layers import BaseChannelLayer, get_channel_layer
from django.contrib.auth.models import User

from approvals.models import GateVisit, Looking
from checkpoints.events import wakeup

Message = dict[str, Any]
WAITING = "waiting."  # prefix of the groups of waiting requests, which are woken without the event's content


class PageLayer(BaseChannelLayer):
    """The channel layer. All receivers share one message object, which nobody may change."""

    extensions = ["groups"]

    def __init__(self, capacity: int = 1000) -> None:
        super().__init__(capacity=capacity)
        self.groups: dict[str, dict[str, None]] = {}
        self._left: dict[str, asyncio.Queue[Message]] = {}

    async def new_channel(self, prefix: str = "specific") -> str:
        """Return a name that no other page has."""
        return f"{prefix}.page!{secrets.token_urlsafe(12)}"

    async def send(self, channel: str, message: Message) -> None:
        """Queue a message; where the queue is full, "overrun" replaces it and all that are queued."""
        self.require_valid_channel_name(channel)
        self._put(channel, message)

    async def receive(self, channel: str) -> Message:
        """Wait for the next message of a channel."""
        self.require_valid_channel_name(channel)
        return await self._queue(channel).get()

    async def group_add(self, group: str, channel: str) -> None:
        """Add a channel to a group: it gets what is sent there."""
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        self.groups.setdefault(group, {})[channel] = None

    async def group_discard(self, group: str, channel: str) -> None:
        """Take a channel out of a group."""
        members = self.groups.get(group, {})
        members.pop(channel, None)
        if not members:
            self.groups.pop(group, None)

    async def group_send(self, group: str, message: Message) -> None:
        """Queue a message for each channel of a group."""
        self.require_valid_group_name(group)
        for channel in self.groups.get(group, ()):
            self._put(channel, message)

    def overrun(self) -> None:
        """Queue "overrun" for each channel of any group."""
        for channel in {channel for members in self.groups.values() for channel in members}:
            self._put(channel, {"type": "overrun"})

    def drain(self, channel: str) -> None:
        """Drop the queued messages of a channel whose reader then looks for news itself."""
        queue = self._left.get(channel)
        while queue is not None and not queue.empty():
            queue.get_nowait()

    def forget(self, channel: str) -> None:
        """Drop the queue of a channel that is closed and has left its groups."""
        self._left.pop(channel, None)

    def _queue(self, channel: str) -> asyncio.Queue[Message]:
        found = self._left.get(channel)
        if found is None:
            found = self._left[channel] = asyncio.Queue(self.get_capacity(channel))
        return found

    def _put(self, channel: str, message: Message) -> None:
        queue = self._queue(channel)
        if queue.full():
            while not queue.empty():
                queue.get_nowait()
            message = {"type": "overrun"}
        queue.put_nowait(message)


DIGITS = 19  # of the largest number
# Kind -> (the group of pages that hear of it, without the number; the method of approvals.live.consumer).
LOOKING, SPOKEN = "looking", "spoken"
KINDS = {LOOKING: ("gate", "looked"), SPOKEN: ("run", "spoke")}


def channel(kind: str) -> str:
    """Return the channel's name; see checkpoints.events.wakeup."""
    return f"{wakeup.channel()}.{kind}"


def whisper(kind: str, number: int) -> None:
    """Send a number to the pages of every web process. Never raises."""
    wakeup.publish(channel(kind), str(number))


async def tell() -> None:
    """Pass messages on to the pages of this process, until cancelled; reconnects after each loss of the connection."""
    await wakeup.listen(*map(channel, KINDS), hear=hand_on, deaf="whispers.deaf")


async def hand_on(message: dict[str, object]) -> None:
    """Pass one message of Redis on to its pages; ignore anything else."""
    said, where, layer = message.get("data"), message.get("channel"), get_channel_layer()
    if message.get("type") != "message" or not isinstance(said, bytes) or not isinstance(where, bytes) or layer is None:
        return
    kind = where.decode(errors="replace").rpartition(".")[2]
    if kind not in KINDS or not said.isdigit() or len(said) > DIGITS:  # a bad message must not end the listening
        return
    group, method = KINDS[kind]
    await layer.group_send(f"{group}.{int(said)}", {"type": method, "number": int(said)})


def look(socket: str, gate_id: int, *, by: User, proposal: int = 0) -> None:
    """Record that a socket's page has this gate in sight, which tells others: a courtesy, so without an event.

    The caller has checked that the person may see it.

    `proposal`: the version that it shows, where that is to be remembered as seen.
    """
    if proposal:
        GateVisit.objects.look(gate_id, by=by, proposal=proposal)
    for changed in Looking.objects.look(gate_id, by=by, socket=socket):
        whisper(LOOKING, changed)


def away(socket: str) -> None:
    """Record that the page has no gate in sight any more."""
    for changed in Looking.objects.away(socket):
        whisper(LOOKING, changed)
