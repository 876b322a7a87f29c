"""Programs and open pages in a process of their own, which takes commands over a pipe and answers each in turn.

Times are on the machine's monotonic clock, in nanoseconds. This process reads nothing of Django's.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Self

import httpx
import uvloop
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Origin

WAIT, SETTLE = 55, 0.15  # seconds: of a long poll, and from sending a request until it waits
BACKOFF = (0.5, 1, 2, 4, 8, 15)  # seconds, as static/js/live.js has it
# The server closes a connection that is idle for five seconds: one that is about to be closed is not used again.
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=2)
JITTER = (0.03, 0.15)  # seconds before a page fetches what is stale


class Clients:
    """The process, which runs inside a `with` block; `load` is Program or OpenPages."""

    def __init__(self, load: Callable[..., Any], *arguments: Any) -> None:
        spawning = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawning.Pipe()
        self.process = spawning.Process(target=_run, args=(theirs, load, arguments), daemon=True)

    def __enter__(self) -> Self:
        self.process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.join()

    def ask(self, command: str, *values: Any) -> Any:
        """Send a command, and wait for its answer."""
        self.pipe.send((command, *values))
        return self.pipe.recv()


def _run(pipe: Connection, load: Callable[..., Any], arguments: Sequence[Any]) -> None:
    async def serve() -> None:
        clients = load(*arguments)
        while True:
            command, *values = await asyncio.to_thread(pipe.recv)
            pipe.send(await getattr(clients, command)(*values))

    uvloop.run(serve())


class Program:
    """A program that waits for the outcome of a gate."""

    def __init__(self, base: str, sent: str) -> None:
        headers = {"Authorization": f"Bearer {sent}"}
        self.client = httpx.AsyncClient(base_url=base, headers=headers, timeout=WAIT * 2, limits=LIMITS)
        self.waiting: asyncio.Task[int]

    async def wait_for(self, gate: int, stream: bool) -> None:
        """Begin to wait, by a long poll or by the stream of events."""
        self.waiting = asyncio.create_task(self._listen(gate) if stream else self._poll(gate))
        await asyncio.sleep(SETTLE)

    async def outcome(self) -> int:
        """Return when the program had the outcome, or the fact that the gate was decided."""
        return await self.waiting

    async def _poll(self, gate: int) -> int:
        while True:
            answer = await self.client.get(f"/api/gates/{gate}/outcome", params={"wait": WAIT})
            at = time.monotonic_ns()
            if answer.raise_for_status().json()["status"] != "open":
                return at

    async def _listen(self, gate: int) -> int:
        async with self.client.stream("GET", "/api/events/stream", params={"subject": f"gate:{gate}"}) as answer:
            async for line in answer.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "data" and json.loads(value)["kind"] == "gate.decided":
                    return time.monotonic_ns()
        raise RuntimeError("the stream ended")


class OpenPage:
    """One open page: the time of each fact by the event's number, and the cursor from which it would continue."""

    def __init__(self, pages: OpenPages, cookie: str) -> None:
        self.pages, self.cookie = pages, cookie
        self.facts: dict[int, int] = {}
        self.cursor = pages.at
        self.opened = self.refused = 0

    async def live(self) -> None:
        """Stay connected, and reconnect whenever the connection is lost."""
        tries, pages = 0, self.pages
        while True:
            try:
                address = f"{pages.base.replace('http', 'ws', 1)}/ws/?after={self.cursor}"
                headers = {"Cookie": self.cookie}
                async with connect(address, origin=Origin(pages.base), additional_headers=headers) as socket:
                    tries = 0
                    self.opened += 1
                    await socket.send(json.dumps({"watch": [pages.subject]}))
                    await self._hear(socket)
            except InvalidHandshake:
                self.refused += 1
            except (OSError, ConnectionClosed, TimeoutError):
                pass
            await asyncio.sleep(BACKOFF[min(tries, len(BACKOFF) - 1)] * random.uniform(0.75, 1.25))
            tries += 1

    async def _hear(self, socket: ClientConnection) -> None:
        async for message in socket:
            at, fact = time.monotonic_ns(), json.loads(message)
            self.cursor = fact.get("cursor") or self.cursor
            if fact.get("subject") == self.pages.subject:
                self.facts.setdefault(int(fact["version"]), at)


class OpenPages:
    """The open pages of one subject; `at` is the cursor at which they were rendered."""

    def __init__(self, base: str, subject: str, at: str, cookies: Sequence[str]) -> None:
        self.base, self.subject, self.at = base, subject, at
        self.pages = [OpenPage(self, cookie) for cookie in cookies]
        self.client = httpx.AsyncClient(base_url=base, timeout=30, limits=LIMITS)
        self.tasks: list[asyncio.Task[None]] = []

    async def open(self) -> int:
        """Open all pages, some hundred per second; return the number of refused handshakes."""
        for page in self.pages:
            self.tasks.append(asyncio.create_task(page.live()))
            await asyncio.sleep(0.003)
        while any(page.opened == 0 for page in self.pages):
            await asyncio.sleep(0.01)
        return await self.missed(0, -1)

    async def hear(self, number: int, within: float) -> list[int]:
        """Return when each page received event `number`, once all have; fewer if `within` seconds were too short."""
        until = time.monotonic() + within
        while time.monotonic() < until and any(number not in page.facts for page in self.pages):
            await asyncio.sleep(0.005)
        return [page.facts[number] for page in self.pages if number in page.facts]

    async def missed(self, first: int, last: int) -> int:
        """Count the facts of these numbers that pages missed and the handshakes refused so far, over all pages."""
        lost = sum(number not in page.facts for page in self.pages for number in range(first, last + 1))
        return lost + sum(page.refused for page in self.pages)

    async def fetch(self, address: str, number: int, viewers: int) -> list[int]:
        """Fetch a fragment for some pages after they received event `number`; return when each had read it."""

        async def fetched(page: OpenPage) -> int:
            while number not in page.facts:
                await asyncio.sleep(0.002)
            await asyncio.sleep(random.uniform(*JITTER))
            headers = {"Cookie": page.cookie, "HX-Request": "true"}
            (await self.client.get(address, headers=headers)).raise_for_status()
            return time.monotonic_ns()

        return list(await asyncio.gather(*map(fetched, self.pages[:viewers])))
