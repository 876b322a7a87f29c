"""The load generator: thousands of open pages in one process; their sockets record each fact's time, and reconnect."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import httpx
import uvloop
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Origin

BACKOFF = (0.5, 1, 2, 4, 8, 15)  # seconds, as static/js/live.js has it
JITTER = (0.03, 0.15)  # seconds before a page fetches what is stale


class Page:
    """One open page: the time of each fact by the event's number, and the cursor from which it would continue."""

    def __init__(self, load: Load, cookie: str) -> None:
        self.load, self.cookie = load, cookie
        self.heard: dict[int, int] = {}
        self.cursor = load.drawn_at
        self.opened = self.refused = 0

    async def live(self) -> None:
        """Stay connected, and reconnect whenever the connection is lost."""
        tries = 0
        while True:
            try:
                address = f"{self.load.address}?after={self.cursor}"
                headers = {"Cookie": self.cookie}
                async with connect(address, origin=Origin(self.load.base), additional_headers=headers) as socket:
                    tries = 0
                    self.opened += 1
                    await socket.send(json.dumps({"watch": self.load.watch}))
                    await self.listen(socket)
            except InvalidHandshake:
                self.refused += 1
            except (OSError, ConnectionClosed, TimeoutError):
                pass
            await asyncio.sleep(BACKOFF[min(tries, len(BACKOFF) - 1)] * random.uniform(0.75, 1.25))
            tries += 1

    async def listen(self, socket: ClientConnection) -> None:
        async for said in socket:
            at, fact = time.monotonic_ns(), json.loads(said)
            self.cursor = fact.get("cursor") or self.cursor
            if fact.get("subject") == self.load.subject:
                self.heard.setdefault(int(fact["version"]), at)
            elif "n" in fact:
                self.heard.setdefault(int(fact["n"]), at)


class Load:
    """The pages, controlled by commands over a pipe, which are answered one after another."""

    def __init__(self, pipe: Connection, base: str, path: str, subject: str, at: str, cookies: Sequence[str]) -> None:
        self.pipe, self.base, self.subject, self.drawn_at = pipe, base, subject, at
        self.address = base.replace("http", "ws", 1) + path
        self.watch = [subject]
        self.pages = [Page(self, cookie) for cookie in cookies]
        self.tasks: list[asyncio.Task[None]] = []
        self.client: httpx.AsyncClient | None = None

    async def run(self) -> None:
        """Serve until told to stop."""
        loop = asyncio.get_running_loop()
        while True:
            name, *values = await loop.run_in_executor(None, self.pipe.recv)
            if name == "stop":
                return
            self.pipe.send(await getattr(self, name)(*values))

    async def open(self) -> int:
        """Open all pages, some hundred per second; return the number of refused handshakes."""
        for page in self.pages:
            self.tasks.append(asyncio.create_task(page.live()))
            await asyncio.sleep(0.003)
        while any(page.opened == 0 for page in self.pages):
            await asyncio.sleep(0.01)
        return sum(page.refused for page in self.pages)

    async def heard(self, number: int, within: float) -> list[int]:
        """Return when each page received event `number`, once all have; fewer if `within` seconds were too short."""
        until = time.monotonic() + within
        while time.monotonic() < until and any(number not in page.heard for page in self.pages):
            await asyncio.sleep(0.005)
        return [page.heard[number] for page in self.pages if number in page.heard]

    async def lost(self, first: int, last: int) -> int:
        """Count the facts of these numbers that pages missed, summed over the pages."""
        return sum(number not in page.heard for page in self.pages for number in range(first, last + 1))

    async def refusals(self) -> int:
        return sum(page.refused for page in self.pages)

    async def cpu(self) -> float:
        """Return the processor seconds that this process has used."""
        return time.process_time()

    async def fetch(self, address: str, number: int, viewers: int, within: float) -> list[int]:
        """Fetch a fragment for some pages after they received event `number`; return when each had read it."""
        if self.client is None:  # a browser's connections are open by then
            limits = httpx.Limits(max_connections=viewers, max_keepalive_connections=viewers)
            self.client = httpx.AsyncClient(base_url=self.base, timeout=within, limits=limits)
        return list(
            await asyncio.gather(*(self._fetched(self.client, page, address, number) for page in self.pages[:viewers]))
        )

    async def _fetched(self, client: httpx.AsyncClient, page: Page, address: str, number: int) -> int:
        while number not in page.heard:
            await asyncio.sleep(0.002)
        await asyncio.sleep(random.uniform(*JITTER))
        headers = {"Cookie": page.cookie, "HX-Request": "true"}
        (await client.get(address, headers=headers)).raise_for_status()
        return time.monotonic_ns()


def main(pipe: Connection, base: str, path: str, subject: str, at: str, cookies: Sequence[str]) -> None:
    """Run the load generator in this process; `at`: the cursor at which the pages were rendered."""
    load = Load(pipe, base, path, subject, at, cookies)
    uvloop.run(load.run())


def answer(pipe: Any, *command: Any) -> Any:
    """Send a command to the process and wait for its answer."""
    pipe.send(command)
    return pipe.recv()
