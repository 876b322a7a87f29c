"""The MCP server: Holdpoint's tools, over whatever transport its caller runs it on.

`connect` gives the HTTP client for one request: its token is the caller's, so every rule of the API holds here too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from pydantic import ValidationError

from ..client import AsyncHoldpoint
from ..errors import HoldpointError
from . import asking
from .limits import Limits
from .tools import TOOLS, Call, Json, format_answer

Context = ServerRequestContext[Any, Any]
Connect = Callable[[Context], AbstractAsyncContextManager[AsyncHoldpoint]]
INSTRUCTIONS = (
    "Ask people before you do something that has effects. A rejection is final: do not do the same another way. "
    "People may change the arguments: use theirs."
)


def build_server(connect: Connect, limits: Limits) -> Server[Any]:
    """Return the server."""

    async def on_list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[described(kind) for kind in TOOLS.values()])

    async def on_call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        kind = TOOLS.get(params.name)
        if kind is None:
            known = ", ".join(TOOLS)
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:100]!r}; there are {known}.")
        try:
            call = kind.model_validate(params.arguments or {})
        except ValidationError as error:
            return tool_error(faults(params.name, error))
        return await answered(call, connect(context), limits)

    return Server(
        "holdpoint", title="Holdpoint", version=release(), instructions=INSTRUCTIONS, on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )  # fmt: skip


def described(kind: type[Call]) -> types.Tool:
    """Return how clients see a tool."""
    hints = types.ToolAnnotations(read_only_hint=kind.reads, destructive_hint=False, open_world_hint=False)
    schema = kind.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    return types.Tool(name=kind.name, description=kind.does, input_schema=schema, annotations=hints)


async def answered(
    call: Call, connection: AbstractAsyncContextManager[AsyncHoldpoint], limits: Limits
) -> types.CallToolResult:
    """Return the tool's answer; it comes within the limit, whatever the network does."""
    answer: Json = call.late()
    try:
        with limits.within():
            async with connection as hp:
                answer = await call.run(hp, limits)
    except HoldpointError as error:
        return refused(call, asking.in_trouble(error))
    return types.CallToolResult(content=[types.TextContent(text=format_answer(answer))])


def refused(call: Call, why: str) -> types.CallToolResult:
    """Return that it was not possible: as a denial where the tool has one."""
    denial = call.denial(why)
    return (
        tool_error(why)
        if denial is None
        else types.CallToolResult(content=[types.TextContent(text=format_answer(denial))])
    )


def tool_error(why: str) -> types.CallToolResult:
    """Return an error of the tool, which its caller's model reads."""
    return types.CallToolResult(content=[types.TextContent(text=why)], is_error=True)


def faults(tool: str, error: ValidationError) -> str:
    """Say what is wrong with the arguments of a call."""
    messages = [f"{'.'.join(map(str, fault['loc'])) or 'all of it'}: {fault['msg']}" for fault in error.errors()[:20]]
    return f"Nothing was asked: correct these arguments of {tool}. {'; '.join(messages)}"


def release() -> str:
    """Return the version of the package; "" where it is not installed, as beside the server."""
    try:
        return version("holdpoint")
    except PackageNotFoundError:
        return ""
