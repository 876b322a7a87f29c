"""Watches at the server behind what the client wants to be told of, whichever age each of them is of.

Servers of the handshake era tell what they like, and take subscriptions to resources. Those of 2026-07-28 tell nothing
but on a stream that was opened for it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import TaskGroup, TaskStatus
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp.server import NotificationOptions
from mcp.server.subscriptions import ListenHandler
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .client_side import ClientSide, Context

NOTHING = types.EmptyResult()


class Watching:
    """The things that are watched at one server. `tasks` live as long as the connection to it."""

    def __init__(self, behind: Client, front: ClientSide, tasks: TaskGroup) -> None:
        self.behind, self.tasks = behind, tasks
        self.serves = ListenHandler(front.bus)
        self.watched: Counter[str] = Counter()
        self.streams: dict[str, anyio.CancelScope] = {}

    @property
    def modern(self) -> bool:
        """Tell whether the server behind takes no subscriptions but streams."""
        return self.behind.protocol_version in MODERN_PROTOCOL_VERSIONS

    def options(self) -> NotificationOptions:
        """Return of which lists the client is told changes: of the tools also when people let a change through."""
        has = self.behind.server_capabilities
        return NotificationOptions(
            tools_changed=bool(has.tools),
            prompts_changed=bool(has.prompts and has.prompts.list_changed),
            resources_changed=bool(has.resources and has.resources.list_changed),
        )

    def handlers(self) -> dict[str, Any]:
        """Return the server's handlers: of the subscriptions that the server behind takes."""
        has, found = self.behind.server_capabilities, {}
        if subscribes := bool(has.resources and has.resources.subscribe):
            found = {"on_subscribe_resource": self.subscribe, "on_unsubscribe_resource": self.unsubscribe}
        if subscribes or any(vars(self.options()).values()):
            found["on_subscriptions_listen"] = self.listen
        return found

    async def lists(self, *, task_status: TaskStatus[None]) -> None:
        """Watch the lists of a server that tells of them on a stream only."""
        options, tools = self.options(), self.behind.server_capabilities.tools
        tools_changed = bool(tools and tools.list_changed)
        task_status.started()
        if not self.modern or not (tools_changed or options.prompts_changed or options.resources_changed):
            return
        try:
            async with self.behind.listen(
                tools_list_changed=tools_changed, prompts_list_changed=options.prompts_changed,
                resources_list_changed=options.resources_changed,
            ):  # fmt: skip
                await anyio.sleep_forever()
        except (MCPError, SubscriptionLost):  # it says more than it does: its lists are read anew at each call
            return

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Watch a resource."""
        await self._watch(str(params.uri))
        return NOTHING

    async def unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Watch it no longer."""
        await self._leave(str(params.uri))
        return NOTHING

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of changes, until the client ends it."""
        watched: list[str] = []
        try:
            for uri in params.notifications.resource_subscriptions or ():
                await self._watch(uri)
                watched.append(uri)
            return await self.serves(context, params)
        finally:
            with anyio.move_on_after(1, shield=True):
                for uri in watched:
                    await self._leave(uri)

    async def _watch(self, uri: str) -> None:
        self.watched[uri] += 1
        if self.watched[uri] > 1:
            return
        try:
            if self.modern:
                await self.tasks.start(self._stream, uri)
            else:
                await self.behind.subscribe_resource(uri)
        except BaseException:
            self.watched[uri] -= 1
            raise

    async def _leave(self, uri: str) -> None:
        if self.watched[uri] == 0:
            return
        self.watched[uri] -= 1
        if self.watched[uri] > 0:
            return
        if self.modern:
            self.streams.pop(uri).cancel()
        else:
            await self.behind.unsubscribe_resource(uri)

    async def _stream(self, uri: str, *, task_status: TaskStatus[None]) -> None:
        with anyio.CancelScope() as scope:
            async with self.behind.listen(resource_subscriptions=[uri]):
                self.streams[uri] = scope
                task_status.started()
                await anyio.sleep_forever()
