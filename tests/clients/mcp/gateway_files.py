"""A folder, the server of its files, and a gateway before that, which an MCP client starts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mcp import Client
from mcp_types import CallToolResult

from tests.clients.mcp.mcp_client import Json, beside, by_stdio
from tests.clients.world import World
from tests.harness.services import WARM
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE

READS_PASS: Json = {"tools": {"read_*": "pass"}}
WRITE = {"path": "note.txt", "text": "Remember the milk.\n"}


@dataclass
class Files:
    """A folder, the server of it, and the gateway before that."""

    world: World
    folder: Path
    policy: Json = field(default_factory=lambda: dict(READS_PASS))

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        rules = self.folder / ".policy.json"
        rules.write_text(json.dumps({"wait": PATIENCE, **self.policy}))
        behind = WARM.standing("-m", "tests.clients.mcp.file_server", str(self.folder))
        known = str(self.folder / ".known.json")
        gateway = ["gateway", "--policy", str(rules), "--known", known, "--", *behind]
        env = {"PYTHONPATH": f"{ROOT / 'clients' / 'python' / 'src'}:{ROOT}"}
        async with by_stdio(self.world, *gateway, **env) as client:
            yield client

    def call(self, name: str, arguments: Json) -> Future[CallToolResult]:
        """Call a tool through a gateway of its own, beside the test."""

        async def do() -> CallToolResult:
            async with self.client() as client:
                return await client.call_tool(name, arguments)

        return beside(do)

    @property
    def calls(self) -> list[str]:
        log = self.folder / ".calls"
        return log.read_text().split() if log.exists() else []
