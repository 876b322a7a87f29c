"""A TCP proxy before a server's unix socket that delays, cuts and half-opens connections."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path

BLOCK = 1 << 16
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close by a reset


class TcpProxy:
    """Listens on a port of this machine until it is closed.

    `delay`: seconds before each block is passed on. `refuses`: new connections are cut at once. `silent`: nothing is
    passed on, and nobody is told. A connection that was silenced stays so until it is cut.
    """

    def __init__(self, server: Path) -> None:
        self.server = server
        self.delay = 0.0
        self.refuses = self.silent = False
        self.open: set[asyncio.StreamWriter] = set()
        self.tasks: set[asyncio.Task[None] | None] = set()  # the loop itself keeps no task alive
        self.passed = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name=f"proxy of {server.name}", daemon=True)
        self.thread.start()
        made = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._connected, "127.0.0.1", 0), self.loop)
        self.listening = made.result(10)
        self.port: int = self.listening.sockets[0].getsockname()[1]

    def cut(self) -> int:
        return asyncio.run_coroutine_threadsafe(self._cut(), self.loop).result(10)

    def heal(self) -> None:
        """Pass everything on again. Connections that were silenced are reset, as by a host that comes back."""
        was_silent, self.delay, self.refuses, self.silent = self.silent, 0.0, False, False
        if was_silent:
            self.cut()

    def close(self) -> None:
        self.refuses = True
        self.loop.call_soon_threadsafe(self.listening.close)
        self.cut()
        asyncio.run_coroutine_threadsafe(self._ended(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            _reset(writer)
            return
        try:
            theirs, ours = await asyncio.open_unix_connection(str(self.server))
        except OSError:  # the server is down
            _reset(writer)
            return
        self.open |= {writer, ours}
        self.tasks.add(asyncio.current_task())
        ways = [asyncio.ensure_future(self._pass(reader, ours)), asyncio.ensure_future(self._pass(theirs, writer))]
        try:
            with suppress(asyncio.CancelledError):  # of which asyncio would complain, at the end
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            self.open -= {writer, ours}
            self.tasks.discard(asyncio.current_task())
            for each in (writer, ours):
                each.close()

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while block := await source.read(BLOCK):
                if self.delay:
                    await asyncio.sleep(self.delay)
                if self.silent:
                    await asyncio.Event().wait()  # until it is cut
                self.passed += len(block)
                target.write(block)
                await target.drain()

    async def _cut(self) -> int:
        cut = list(self.open)
        for writer in cut:
            _reset(writer)
        return len(cut) // 2

    async def _ended(self) -> None:
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    if raw is not None and raw.family == socket.AF_INET:
        with suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
