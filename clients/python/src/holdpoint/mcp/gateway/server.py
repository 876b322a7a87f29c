"""The gateway as an MCP server: what it passes on to the server behind it, what it watches there, what it asks about.

Servers of the handshake era tell what they like, and take subscriptions to resources. Those of 2026-07-28 tell nothing
but on a stream that was opened for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import TaskStatus
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp.server import NotificationOptions, Server
from mcp.server.subscriptions import ListenHandler
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ...client import AsyncHoldpoint
from ...errors import AlreadyDone, Answered, HoldpointError, Invalid, StillOpen, Unknown
from ...posting import Posting
from .. import asking
from ..asking import REST
from ..server import tool_error
from .approved import Json, Made, perform_call
from .client_side import Caller, ClientSide, Context
from .letting import Letting
from .pins import VERSION, Pins, fingerprint_tool
from .policy import Policy, Rule

NOTHING = types.EmptyResult()


class Watching:
    """The things that are watched at one server. `tasks` live as long as the connection to it."""

    def __init__(self, front: ClientSide, behind: Client) -> None:
        self.behind, self.tasks = behind, front.tasks
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


REMAINS = 0.5  # seconds that a question waits at least


class Gateway:
    """Stands between a client and the server of `behind`, by the operator's policy."""

    def __init__(self, front: ClientSide, behind: Client, hp: AsyncHoldpoint, policy: Policy, pins: Pins) -> None:
        self.front, self.behind, self.hp, self.policy = front, behind, hp, policy
        self.letting, self.place = Letting(front, behind, hp, policy, pins), pins.place
        self.watching = Watching(front, behind)
        self.newest: dict[str, str] = {}
        self.level: types.LoggingLevel | None = None

    async def server(self) -> Server[Any]:
        """Return the server: it has what the one behind it has, and its words as they were let through."""
        has, info = self.behind.server_capabilities, self.behind.server_info
        passed: dict[str, Any] = self.watching.handlers()
        if has.resources:
            passed |= {
                "on_list_resources": _passing_on(self.behind.list_resources), "on_read_resource": self.read_resource,
                "on_list_resource_templates": _passing_on(self.behind.list_resource_templates),
            }  # fmt: skip
        if has.prompts:
            passed |= {"on_list_prompts": _passing_on(self.behind.list_prompts), "on_get_prompt": self.get_prompt}
        if has.completions:
            passed |= {"on_completion": self.complete}
        if has.tools:
            passed |= {"on_list_tools": self.list_tools, "on_call_tool": self.call_tool}
        if has.logging:
            passed["on_set_logging_level"] = self.set_level
        if self.front.opening.capabilities.roots and not self.watching.modern:
            passed["on_roots_list_changed"] = self.roots_changed
        version = info.version if info and VERSION.fullmatch(info.version) else ""
        words: dict[str, Any] = {"name": "gateway", **await self.letting.words()}
        made: Server[Any] = Server(version=version, **words, **passed)
        made.middleware.append(self.front.heard)
        return made

    async def list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Return the tools that were let through, on one page, without those that the policy refuses."""
        try:
            return types.ListToolsResult(tools=await self.letting.offered())
        except HoldpointError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> Any:
        """Call a tool: at once where it passes, or as people approve it."""
        return await self.front.call(context, params, lambda caller: self.called(caller, params, self.meta(context)))

    async def called(self, caller: Caller, params: types.CallToolRequestParams, meta: Any) -> types.CallToolResult:
        """Return the result of a call."""
        patience = max(self.policy.wait - REST, self.policy.wait / 2)
        ends = anyio.current_time() + patience
        try:
            tool = await self.letting.tool(params.name, patience=patience)
            rule = self.policy.rule(tool) if tool else None
            if tool is None or rule is None or rule.do == "refuse":
                raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:100]!r}.")
            arguments, send = params.arguments or {}, self.sender(caller, tool.name, meta)
            if rule.do == "pass":
                return await send(arguments)
            posting = self.question(tool, rule, arguments)
            await caller.session.report_progress(0, None, f"People are asked whether {tool.name} may be called.")
            made = Made(send, lambda: self.letting.is_still(tool), self.policy.results, self.newest)
            return await self.asked(replace(posting, timeout=max(ends - anyio.current_time(), REMAINS)), made)
        except HoldpointError as error:
            return refused(error)

    async def asked(self, posting: Posting, tool_call: Made) -> types.CallToolResult:
        """Ask and perform; people get no form where the tool's schema is none that Holdpoint can use."""
        try:
            return await perform_call(self.hp, posting, tool_call)
        except Invalid as invalid:
            places = [str(fault.get("parameter", "")) for fault in invalid.errors]
            if not any("/schema" in place for place in places):
                raise
        [action] = posting.body["actions"]
        bare = {name: value for name, value in action.items() if name != "schema"}
        plain = asking.keyed(replace(posting, body=posting.body | {"actions": [bare]}), "gateway")
        return await perform_call(self.hp, plain, tool_call)

    def question(self, tool: types.Tool, rule: Rule, arguments: Json) -> Posting:
        """Return the question about a call. What the tool says of itself is shown as its words. Raises NotJson."""
        shown = {
            "name": tool.name, "description": tool.description or "", "fingerprint": fingerprint_tool(tool),
            "server": self.place,
        }  # fmt: skip
        posting = asking.question(
            tool.name, arguments, risk=rule.risk, pinned=rule.pinned, schema=tool.input_schema,
            state={"described": shown}, policy=rule.policy or self.policy.policy, thread=self.policy.thread,
            idempotent=rule.idempotent,
        )  # fmt: skip
        return asking.keyed(posting, "gateway")

    def sender(self, caller: Caller, name: str, meta: Any) -> Callable[[Json], Awaitable[types.CallToolResult]]:
        """Return the function that calls the tool; its progress goes to the newest session then."""

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            await caller.session.report_progress(progress, total, message)

        return partial(self.behind.call_tool, name, progress_callback=progressed, meta=meta)

    def meta(self, context: Context) -> Any:
        """Return what a server of 2026-07-28 has to be told with a request, so that it logs."""
        level = (context.meta or {}).get(types.LOG_LEVEL_META_KEY) or self.level
        return {types.LOG_LEVEL_META_KEY: level} if level and self.watching.modern else None

    async def set_level(self, context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """Pass on from which level the client wants to read what is logged."""
        self.level = params.level
        if not self.watching.modern:
            await self.behind.set_logging_level(params.level)
        return types.EmptyResult()

    async def roots_changed(self, context: Context, params: types.NotificationParams | None) -> None:
        """Pass it on."""
        await self.behind.send_roots_list_changed()

    async def read_resource(self, context: Context, params: types.ReadResourceRequestParams) -> Any:
        """Pass it on."""
        uri, meta = str(params.uri), self.meta(context)
        read = partial(self.behind.read_resource, uri, meta=meta, cache_mode="refresh")
        return await self.front.call(context, params, lambda _: read())

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> Any:
        """Pass it on."""
        get = partial(self.behind.get_prompt, params.name, params.arguments, meta=self.meta(context))
        return await self.front.call(context, params, lambda _: get())

    async def complete(self, context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Pass it on."""
        argument = {"name": params.argument.name, "value": params.argument.value}
        known = params.context.arguments if params.context else None
        return await self.behind.complete(params.ref, argument, known)


def refused(error: Exception) -> types.CallToolResult:
    """Return why the call was not made, or what is known of it, as the tool's error."""
    if isinstance(error, Unknown):
        return tool_error(str(error))
    if isinstance(error, StillOpen):
        return tool_error(
            f"Nobody has decided yet at gate {error.gate}, so the call was not made. Make the same call again to get "
            f"the decision; people decide at {error.url}"
        )
    if isinstance(error, Answered):
        return tool_error(f"{error} {error.answer}")
    if isinstance(error, AlreadyDone):
        kept = error.result.get("result") if isinstance(error.result, dict) else None
        if isinstance(kept, dict):
            return types.CallToolResult.model_validate(kept)
        return tool_error("This call was made already, once; its result was not kept.")
    return tool_error(asking.in_trouble(error))


def _passing_on(listing: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return a handler that passes the request for a page of a list on."""

    async def passed_on(context: Context, params: types.PaginatedRequestParams | None) -> Any:
        return await listing(cursor=params.cursor if params else None, cache_mode="refresh")

    return passed_on
