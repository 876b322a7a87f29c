"""An MCP server that asks and tells its client everything it can, for the gateway to stand before.

`python -m tests.clients.mcp.talking_server handshake|streams|PORT`: of the handshake era, of 2026-07-28, or by HTTP.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Context = ServerRequestContext[Any, Any]
NOTE = "file:///note"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
COLOUR = types.ElicitRequestFormParams(message="Which colour?", requested_schema=SCHEMA)
HELLO = types.SamplingMessage(role="user", content=types.TextContent(text="Say hello."))
WORD = types.CreateMessageRequestParams(messages=[HELLO], max_tokens=10)
BUS = InMemorySubscriptionBus()
SUBSCRIBED: set[str] = set()
LEVELS: list[str] = []


async def on_list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    names = ["survey", "touch", "colour"]
    return types.ListToolsResult(tools=[types.Tool(name=each, input_schema={"type": "object"}) for each in names])


async def on_call_tool(context: Context, params: types.CallToolRequestParams) -> Any:
    if params.name == "touch":
        return await touch(context)
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        if params.input_responses is None:
            asked: dict[str, Any] = {"colour": types.ElicitRequest(params=COLOUR)}
            if params.name == "survey":
                asked["word"] = types.CreateMessageRequest(params=WORD)
                asked["roots"] = types.ListRootsRequest()
            return types.InputRequiredResult(input_requests=asked, request_state="s")
        got: Any = params.input_responses
        assert params.request_state == "s"
        return answer(*[got[each] for each in ("colour", "word", "roots") if each in got])
    session = context.session
    colour = await session.send_request(types.ElicitRequest(params=COLOUR), types.ElicitResult)
    if params.name == "colour":
        return answer(colour)
    word = await session.send_request(types.CreateMessageRequest(params=WORD), types.CreateMessageResult)
    roots = await session.send_request(types.ListRootsRequest(), types.ListRootsResult)
    return answer(colour, word, roots)


def answer(*got: Any) -> types.CallToolResult:
    said = [each.model_dump_json(include={"content", "action", "roots"}) for each in got]
    return types.CallToolResult(content=[types.TextContent(text="\n".join(said))])


async def touch(context: Context) -> types.CallToolResult:
    await context.session.report_progress(1, 2, "Half of it")
    await context.session.send_log_message("info", f"touched {' '.join(LEVELS)}", "talking", context.request_id)
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        await BUS.publish(ToolsListChanged())
        await BUS.publish(ResourceUpdated(NOTE))
    else:
        await context.session.send_tool_list_changed()
        for each in SUBSCRIBED:
            await context.session.send_resource_updated(each)
    return types.CallToolResult(content=[types.TextContent(text="touched")])


async def on_subscribe(context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    SUBSCRIBED.add(params.uri)
    return types.EmptyResult()


async def on_unsubscribe(context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    SUBSCRIBED.discard(params.uri)
    return types.EmptyResult()


async def on_set_level(context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    LEVELS.append(params.level)
    return types.EmptyResult()


async def on_completion(context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=[f"{params.argument.value}-whole"]))


async def on_list_resources(context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(uri=NOTE, name="note")])


async def on_list_prompts(context: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[types.Prompt(name="tidy")])


def server() -> Server[Any]:
    return Server(
        "talking", version="7", title="Talks", on_list_tools=on_list_tools, on_call_tool=on_call_tool,
        on_subscribe_resource=on_subscribe, on_unsubscribe_resource=on_unsubscribe, on_list_resources=on_list_resources,
        on_subscriptions_listen=ListenHandler(BUS), on_set_logging_level=on_set_level, on_completion=on_completion,
        on_list_prompts=on_list_prompts,
    )  # fmt: skip


async def serve(how: str) -> None:
    served = server()
    options = served.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (reads, writes):
        if how == "handshake":
            await serve_loop(served, reads, writes, lifespan_state={}, init_options=options)
        else:
            await served.run(reads, writes, options)


def guarded(application: Any) -> Any:
    """The application for those who send the token of TALKING_TOKEN, if there is one."""
    token = os.environ.get("TALKING_TOKEN", "")

    async def serve_one(scope: Any, receive: Any, send: Any) -> None:
        sent = dict(scope.get("headers", ())).get(b"authorization", b"").decode()
        if scope["type"] == "http" and token and sent != f"Bearer {token}":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await application(scope, receive, send)

    return serve_one


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        uvicorn.run(guarded(server().streamable_http_app()), host="127.0.0.1", port=int(sys.argv[1]))
    else:
        anyio.run(serve, sys.argv[1])
