"""MCP clients of the official SDK, over real sockets and as real processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from holdpoint.mcp.asking import Limits
from holdpoint.mcp.server import answered
from holdpoint.mcp.tools import TOOLS
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.clients.world import POOL, World
from tests.harness.services import WARM
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE, until

T = TypeVar("T")
SOURCE = str(ROOT / "clients" / "python" / "src")
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
    async with Client(command(world, *arguments, **env)) as client:
        yield client


def command(world: World, *arguments: str, **env: str) -> StdioServerParameters:
    """`holdpoint …` with the world's address and token."""
    known = {**world.env, "PYTHONPATH": SOURCE, "PYTHONDONTWRITEBYTECODE": "1", **env}
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
        """Call one beside the test."""
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
    return until(lambda: _at_gate(ask()), what="a gate opens", within=2 * PATIENCE) or ""


def _at_gate(asked: Future[Any]) -> str | None:
    found = asked.result(PATIENCE)
    text = said(found) if isinstance(found, CallToolResult) else json.dumps(found)
    return text if "Nobody has decided yet at gate" in text else None


def decided(ask: Callable[[], Future[Any]]) -> Any:
    """Ask until there is an answer that is another one than that nobody has decided."""
    return until(lambda: _decided(ask()), what="a decision", within=2 * PATIENCE)


def _decided(asked: Future[Any]) -> Any:
    found = asked.result(PATIENCE)
    text = said(found) if isinstance(found, CallToolResult) else json.dumps(found)
    return None if "Nobody has decided yet" in text or "did not answer in time" in text else found


def children(words: Sequence[str]) -> list[int]:
    """The processes below this one whose command has all these words."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                commands[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
            except OSError:  # it ended meanwhile
                continue
            parents[int(folder.name)] = int(stat[1])
    return [pid for pid in parents if _below(pid, parents) and all(word in commands.get(pid, "") for word in words)]


def _below(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


def kill(*words: str) -> None:
    """Kill the one process of this test whose command has these words, as a lost machine would."""
    found = until(lambda: children(words), what=f"a process with {words}")
    assert found is not None
    for pid in found:
        os.kill(pid, signal.SIGKILL)
