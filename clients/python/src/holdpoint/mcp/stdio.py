"""`holdpoint mcp`: the MCP server over stdin and stdout, with the address and the token of the environment."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
from mcp.server.stdio import stdio_server

from ..client import AsyncHoldpoint
from ..errors import HoldpointError
from .limits import WAIT, Limits
from .server import Context, build_server


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
    made = argparse.ArgumentParser(prog="holdpoint mcp", description=__doc__)
    made.add_argument("--url", default="", help="the server's address; otherwise HOLDPOINT_URL")
    wait = "seconds that a call waits for people, below your client's own limit (%(default)g)"
    made.add_argument("--wait", type=float, default=WAIT, help=wait)
    return made
