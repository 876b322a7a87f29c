"""The MCP server: Holdpoint's tools, over whatever transport its caller runs it on, as `holdpoint mcp` on stdin.

`connect` gives the HTTP client for one request: its token is the caller's, so every rule of the API holds here too.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from pydantic import ValidationError

from ..client import AsyncHoldpoint
from ..errors import HoldpointError
from . import asking
from .asking import WAIT, Limits, describe_fault
from .tools import TOOLS, Call, Json

Context = ServerRequestContext[Any, Any]
Connect = Callable[[Context], AbstractAsyncContextManager[AsyncHoldpoint]]
SERVES = "`holdpoint mcp`: the MCP server over stdin and stdout, with the address and the token of the environment."
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
            faults = "; ".join(map(describe_fault, error.errors()[:20]))
            return tool_error(f"Nothing was asked: correct these arguments of {params.name}. {faults}")
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
    """Return the tool's answer; it comes within the limit, whatever the network does.

    Where it was not possible that is a denial, if the tool has one.
    """
    answer: Json | None = call.late()
    try:
        with limits.within():
            async with connection as hp:
                answer = await call.run(hp, limits)
    except HoldpointError as error:
        why = asking.in_trouble(error)
        answer = call.denial(why)
        if answer is None:
            return tool_error(why)
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(answer, ensure_ascii=False))])


def tool_error(why: str) -> types.CallToolResult:
    """Return an error of the tool, which its caller's model reads."""
    return types.CallToolResult(content=[types.TextContent(text=why)], is_error=True)


def release() -> str:
    """Return the version of the package; "" where it is not installed, as beside the server."""
    try:
        return version("holdpoint")
    except PackageNotFoundError:
        return ""


def main(arguments: Sequence[str]) -> int:
    """Serve until stdin ends; return the exit code."""
    asked = parser().parse_args(arguments)
    try:
        AsyncHoldpoint(asked.url)  # says at once what is missing
        limits = Limits(asked.wait)
    except (HoldpointError, ValueError) as error:
        sys.stderr.write(f"holdpoint mcp: {error}\n")
        return 2
    anyio.run(serve, asked.url, limits)
    return 0


async def serve(url: str, limits: Limits) -> None:
    """Serve one client."""
    async with AsyncHoldpoint(url, patience=limits.patient) as hp:

        @asynccontextmanager
        async def connect(context: Context) -> AsyncIterator[AsyncHoldpoint]:
            yield hp

        served = build_server(connect, limits)
        async with stdio_server() as (reads, writes):
            await served.run(reads, writes, served.create_initialization_options())


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    made = argparse.ArgumentParser(prog="holdpoint mcp", description=SERVES)
    made.add_argument("--url", default="", help="the server's address; otherwise HOLDPOINT_URL")
    wait = "seconds that a call waits for people, below your client's own limit (%(default)g)"
    made.add_argument("--wait", type=float, default=WAIT, help=wait)
    return made
