"""MCP clients of the official SDK, over real sockets and as real processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from holdpoint.mcp.asking import Limits
from holdpoint.mcp.server import TOOLS, answered
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.clients.world import POOL, World
from tests.harness.services import WARM
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE, until

T = TypeVar("T")
Json = dict[str, Any]


@asynccontextmanager
async def by_http(world: World, *, mode: str = "legacy", token: str = "") -> AsyncIterator[Client]:
    """A client of /mcp. `mode`: legacy begins with a handshake, auto asks what the server speaks."""
    headers = {"Authorization": f"Bearer {token or world.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
        Client(streamable_http_client(f"{world.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def by_stdio(world: World, *arguments: str, **env: str) -> AsyncIterator[Client]:
    async with Client(stdio_command(world, *arguments, **env)) as client:
        yield client


def stdio_command(world: World, *arguments: str, **env: str) -> StdioServerParameters:
    """`holdpoint …` with the world's address and token."""
    known = {**world.python_env, "PYTHONDONTWRITEBYTECODE": "1", **env}
    program, *words = WARM.standing("-m", "holdpoint.command", *arguments)
    return StdioServerParameters(command=program, args=words, env=known, cwd=ROOT)


def beside(do: Callable[[], Awaitable[T]]) -> Future[T]:
    """Run it in an event loop of its own beside the test."""

    async def run() -> T:
        return await do()

    return POOL.submit(lambda: asyncio.run(run()))


def called(world: World, name: str, arguments: Json, *, mode: str = "legacy") -> Future[CallToolResult]:
    async def do() -> CallToolResult:
        async with by_http(world, mode=mode) as client:
            return await client.call_tool(name, arguments)

    return beside(do)


class Tools:
    """The tools of the MCP server as `/mcp` and `holdpoint mcp` run them, in this process, with little time to wait."""

    def __init__(self, world: World, wait: float = 1.0) -> None:
        self.world, self.limits = world, Limits(wait)

    def __call__(self, name: str, arguments: Json) -> Future[CallToolResult]:
        call = TOOLS[name].model_validate(arguments)
        hp = self.world.awaited(patience=self.limits.patient)
        return beside(lambda: answered(call, hp, self.limits))


def said(result: CallToolResult) -> str:
    return "\n".join(each.text for each in result.content if isinstance(each, TextContent))


def told(result: CallToolResult) -> Json:
    """The JSON text of a result that is no error."""
    assert not result.is_error, said(result)
    found: Json = json.loads(said(result))
    return found


def still_open(ask: Callable[[], Future[Any]]) -> str:
    """Ask until the answer is that nobody has decided at a gate: on a slow machine it may come before there is one."""

    def at_gate() -> str | None:
        text = text_of(ask().result(PATIENCE))
        return text if "Nobody has decided yet at gate" in text else None

    return until(at_gate, what="a gate opens", within=2 * PATIENCE) or ""


def decided(ask: Callable[[], Future[Any]]) -> Any:
    """Ask until there is an answer that is another one than that nobody has decided."""

    def answer() -> Any:
        found = ask().result(PATIENCE)
        text = text_of(found)
        return None if "Nobody has decided yet" in text or "did not answer in time" in text else found

    return until(answer, what="a decision", within=2 * PATIENCE)


def text_of(found: Any) -> str:
    return said(found) if isinstance(found, CallToolResult) else json.dumps(found)


def children(*words: str) -> list[int]:
    """The processes whose command has all these words, of which one is a folder of this test's."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended meanwhile
            said = command.read_text().replace("\0", " ")
            found += [int(command.parent.name)] if all(word in said for word in words) else []
    return found


def kill(*words: str) -> None:
    for pid in until(lambda: children(*words), what=f"a process with {words}"):
        os.kill(pid, signal.SIGKILL)
