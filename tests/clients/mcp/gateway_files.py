"""A folder, the server of its files, and a gateway before that, which an MCP client starts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from holdpoint.mcp import asking
from holdpoint.mcp.gateway import command, letting
from holdpoint.mcp.gateway.pins import Pins
from holdpoint.mcp.gateway.policy import Policy
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.shared.memory import create_client_server_memory_streams
from mcp_types import CallToolResult

from tests.clients.mcp.file_server import serving
from tests.clients.mcp.mcp_client import Json, beside, stdio_command
from tests.clients.world import World
from tests.harness.services import WARM
from tests.harness.waiting import PATIENCE

READS_PASS: Json = {"tools": {"read_*": "pass"}}
WRITE = {"path": "note.txt", "text": "Remember the milk.\n"}
STREAMS = ContextVar[Any]("STREAMS")  # of the gateway that a task starts, in the place of stdin and stdout


@dataclass
class Files:
    """A folder, the server of it, and the gateway before that: in this process, or each in one of its own."""

    world: World
    folder: Path
    policy: Json = field(default_factory=lambda: dict(READS_PASS))
    in_processes: bool = False
    behind: list[str] = field(default_factory=list)  # another server than that of the folder
    env: dict[str, str] = field(default_factory=dict)

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Client]:
        rules = self.folder / ".policy.json"
        rules.write_text(json.dumps({"wait": PATIENCE, **self.policy}))
        behind = self.behind or ["--", *WARM.standing("-m", "tests.clients.mcp.file_server", str(self.folder))]
        words = ["--policy", str(rules), "--known", str(self.folder / ".known.json"), *behind]
        if self.in_processes:
            async with Client(stdio_command(self.world, "gateway", *words, **self.env), **options) as client:
                yield client
            return
        asked = command.parser().parse_args(words)
        async with create_client_server_memory_streams() as (mine, its), anyio.create_task_group() as tasks:
            STREAMS.set(its)
            pins = Pins(Path(asked.known), command.place_of(asked.server))
            tasks.start_soon(command.serve, asked, asking.read_settings(Policy, asked.policy, "policy"), pins)
            async with Client(nullcontext(mine)) as client:
                yield client
            await mine[1].aclose()

    def call(self, name: str, arguments: Json) -> Future[CallToolResult]:
        async def do() -> CallToolResult:
            async with self.client() as client:
                return await client.call_tool(name, arguments)

        return beside(do)

    @property
    def calls(self) -> list[str]:
        log = self.folder / ".calls"
        return log.read_text().split() if log.exists() else []


def run_here(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    """Have gateways of this process take the streams that they are given, and a server behind in this process too."""

    def behind(**named: Any) -> Any:
        return InMemoryTransport(serving(Path(named["args"][-1])))

    for name, value in world.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(command, "stdio_server", lambda: nullcontext(STREAMS.get()))
    monkeypatch.setattr(command, "StdioServerParameters", behind)
    monkeypatch.setattr(letting, "REST", 0.3)  # seconds that a list waits for people
