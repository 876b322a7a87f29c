"""Programs that wait for outcomes, in one separate process: each records when it had its own."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import ssl
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import httpx
import uvloop

WAIT = 55  # seconds
SETTLE = 0.15  # seconds from sending the last request until it waits


class Waiters:
    """The process of the programs, which runs inside a `with` block."""

    def __init__(self, base: str, sent: str, *, stream: bool) -> None:
        spawning = multiprocessing.get_context("spawn")
        self.pipe, there = spawning.Pipe()
        self.process = spawning.Process(target=_run, args=(there, base, sent, stream), daemon=True)

    def __enter__(self) -> Self:
        self.process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.join()

    def wait_for(self, gates: Sequence[int]) -> None:
        """Let a program wait for each of the gates; return when all of them wait."""
        self.pipe.send(list(gates))
        if self.pipe.recv() != "ready":
            raise RuntimeError("the programs do not wait")

    def next(self) -> int:
        """Return when the next program had its outcome (monotonic ns); with a stream, the fact first."""
        told = self.pipe.recv()
        while isinstance(told, str):
            told = self.pipe.recv()
        return int(told)

    def refused(self) -> int:
        """Count the programs refused so far."""
        found = 0
        while self.pipe.poll():
            found += self.pipe.recv() == "refused"
        return found


def _run(pipe: Connection, base: str, sent: str, stream: bool) -> None:
    uvloop.run(_serve(pipe, base, sent, stream))


async def _serve(pipe: Connection, base: str, sent: str, stream: bool) -> None:
    """Wait for the gates that come over the pipe, again and again, until killed.

    Each program has a client of its own, as in life: a shared one looks through all its connections at each answer.
    """
    trusted = ssl.create_default_context()  # each client would load it

    def client() -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {sent}"}
        return httpx.AsyncClient(base_url=base, headers=headers, timeout=WAIT * 2, verify=trusted)

    async with AsyncExitStack() as opened:
        clients: list[httpx.AsyncClient] = []
        while gates := await asyncio.to_thread(pipe.recv):
            while len(clients) < len(gates):
                clients.append(await opened.enter_async_context(client()))
            tasks = []
            for each, gate in zip(clients, gates, strict=False):
                one = _streamed(pipe, each, gate) if stream else _polled(pipe, each, gate)
                tasks.append(asyncio.create_task(one))
                await asyncio.sleep(0.008 if len(gates) > 1 else 0)
            await asyncio.sleep(SETTLE)
            pipe.send("ready")
            await asyncio.gather(*tasks)


async def _polled(pipe: Connection, client: httpx.AsyncClient, gate: int) -> None:
    while True:
        try:
            answer = await client.get(f"/api/gates/{gate}/outcome", params={"wait": WAIT})
        except httpx.RemoteProtocolError:  # the server closed the kept connection while this was on its way
            continue
        at = time.monotonic_ns()
        if answer.status_code != 200:
            pipe.send("refused")
        elif answer.json()["status"] != "open":
            pipe.send(at)
            return


async def _streamed(pipe: Connection, client: httpx.AsyncClient, gate: int) -> None:
    query: dict[str, Any] = {"subject": f"gate:{gate}"}
    async with client.stream("GET", "/api/events/stream", params=query) as answer:
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "data" and json.loads(value)["kind"] == "gate.decided":
                pipe.send(time.monotonic_ns())
                await client.get(f"/api/gates/{gate}/outcome")  # the fact says that the gate ended, but not how
                pipe.send(time.monotonic_ns())
                return
