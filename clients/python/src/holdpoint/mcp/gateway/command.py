"""`holdpoint gateway -- COMMAND …` or `holdpoint gateway URL`: serves over stdin and stdout what is behind it."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPDeprecationWarning

from ...client import AsyncHoldpoint
from ...errors import HoldpointError, NotConfigured
from ..asking import read_settings
from .client_side import ClientSide, read_opening
from .pins import Pins, server_mark, usual_file
from .policy import Policy
from .server import Gateway

OURS = "HOLDPOINT_"  # variables that the server behind does not get: the token speaks for the agent
NO_FILE = "-"


def main(arguments: Sequence[str]) -> int:
    """Serve until stdin ends; return the exit code."""
    asked = parser().parse_args(arguments)
    try:
        policy = read_settings(Policy, asked.policy, "policy")
        file = None if asked.known == NO_FILE else Path(asked.known or usual_file(asked.server))
        pins = Pins(file, place_of(asked.server))
        AsyncHoldpoint(asked.url)  # says at once what is missing
        if asked.token_env and asked.token_env not in os.environ:
            raise NotConfigured(f"There is no variable {asked.token_env}.")
        warnings.simplefilter("ignore", MCPDeprecationWarning)  # servers and clients of every age are served
        anyio.run(serve, asked, policy, pins)
    except HoldpointError as error:
        sys.stderr.write(f"holdpoint gateway: {error}\n")
        return 2
    except Exception as error:  # noqa: BLE001 - whatever ended it, its caller reads why
        first = cause(error)
        sys.stderr.write(f"holdpoint gateway: {' '.join(asked.server)} failed: {type(first).__name__}: {first}\n")
        return 1
    return 0


async def serve(asked: argparse.Namespace, policy: Policy, pins: Pins) -> None:
    """Serve one client: the server behind is started once its first request says what it can do."""
    async with stdio_server() as (reads, writes):
        opening, replayed = await read_opening(reads)
        if opening is None:
            return
        async with AsyncExitStack() as stack:
            tasks = await stack.enter_async_context(anyio.create_task_group())
            front = ClientSide(opening, tasks)
            behind = await stack.enter_async_context(await client_of(asked, front, stack))
            hp = await stack.enter_async_context(AsyncHoldpoint(asked.url, patience=policy.wait))
            gateway = Gateway(front, behind, hp, policy, pins)
            served = await gateway.server()
            await tasks.start(gateway.watching.lists)
            options = served.create_initialization_options(gateway.watching.options())
            await served.run(replayed, writes, options)
            tasks.cancel_scope.cancel()


async def client_of(asked: argparse.Namespace, front: ClientSide, stack: AsyncExitStack) -> Client:
    """Return the client of the server behind, which offers that server what `front` can do."""
    command, *words = asked.server
    can = front.callbacks() | {"client_info": front.opening.info}
    if not is_address(command):
        env = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        return Client(StdioServerParameters(command=command, args=words, env=env), **can)
    headers = {"Authorization": f"Bearer {os.environ[asked.token_env]}"} if asked.token_env else {}
    made = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30.0, read=300.0))
    http = await stack.enter_async_context(made)
    return Client(streamable_http_client(command, http_client=http), **can)


def place_of(server: Sequence[str]) -> str:
    """Return the mark of a server; a command is another one in another folder."""
    return server_mark(*server) if is_address(server[0]) else server_mark(os.getcwd(), *server)


def is_address(server: str) -> bool:
    """Tell whether it is the address of a server, and no command."""
    return server.startswith(("http://", "https://"))


def cause(error: BaseException) -> BaseException:
    """Return the first of a group of exceptions."""
    while inside := getattr(error, "exceptions", None):
        error = inside[0]
    return error


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    made = argparse.ArgumentParser(prog="holdpoint gateway", description=__doc__)
    made.add_argument("--policy", default="", help="a JSON file: which tools pass, which are asked about (all of them)")
    made.add_argument("--url", default="", help="Holdpoint's address; otherwise HOLDPOINT_URL")
    known = f"where the tools are kept as people last let them through; {NO_FILE}: only while it runs"
    made.add_argument("--known", default="", help=known)
    made.add_argument("--token-env", default="", help="of a server with a URL: the variable that holds its token")
    made.add_argument("server", nargs="+", help="the command of the server behind, or its URL")
    return made
