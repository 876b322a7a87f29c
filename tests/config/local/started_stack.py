"""The stack as a person starts it, in a home of its own, without the first inbox unless it is asked for."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import httpx
import psutil

from config.local.__main__ import fingerprint
from config.local.home import MARK
from tests.harness.postgresql_clusters import migrated_copy
from tests.harness.services import Service, free_port, wait_for_http
from tests.harness.session import ROOT, Session
from tests.harness.waiting import PATIENCE

START = 4 * PATIENCE  # eight processes, one after the other
COMMAND = [sys.executable, "-m", "config.local", "run"]
# Those of the test session's own servers, which this stack must not use.
CLEARED: tuple[str, ...] = (
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
    "REDIS_URL",
    "HOLDPOINT_SECRET_KEY",
    "HOLDPOINT_SEAL_KEY",
)
CLEARED += ("HOLDPOINT_STATIC_ROOT", "HOLDPOINT_LOG_FORMAT", "SANDBOX_URL")


def environment(home: Path, port: int, **more: str) -> dict[str, str]:
    return dict.fromkeys(CLEARED, "") | {"HOLDPOINT_HOME": str(home), "PORT": str(port)} | more


def started_before(home: Path, session: Session, *, database: bool = True) -> Path:
    """Make a home as an earlier start leaves it, with its tables and static files: making them takes the longest."""
    home.mkdir(parents=True)
    (home / MARK).touch()
    if database:
        migrated_copy(session, home / "postgres")
    shutil.copytree(session.home / "static", home / "static")
    (home / "static-stamp").write_text(fingerprint(ROOT / "static"))
    return home


class Stack:
    def __init__(self, folder: Path, *words: str, home: Path | None = None, seeded: bool = False, **more: str) -> None:
        self.home = home or folder / "home"
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        if not seeded:
            self.home.mkdir(parents=True, exist_ok=True)
            (self.home / MARK).touch()
            (self.home / "seeded").touch()
        self.service = Service("stack", [*COMMAND, *words], folder, environment(self.home, self.port, **more))

    def wait(self) -> None:
        wait_for_http(self.service, f"{self.base}/healthz", within=START)
        self.service.says(r"Holdpoint is at http://localhost:\d+", within=START)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.base + path, timeout=PATIENCE)

    def interrupt(self, *, within: float = PATIENCE) -> int:
        self.service.process.send_signal(signal.SIGINT)
        return self.service.process.wait(within)

    def processes(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if belongs(process, self.home)]

    def child(self, words: str) -> psutil.Process:
        return self.children(words)[0]

    def children(self, words: str) -> list[psutil.Process]:
        return [process for process in self.processes() if words in command_of(process)]

    def sockets(self) -> list[Path]:
        return [path for path in self.home.rglob("*") if path.is_socket()]


def command_of(process: psutil.Process) -> str:
    """Return the command line of `process`; "" where it is gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def belongs(process: psutil.Process, home: Path) -> bool:
    """Tell whether `process` was started for `home`; PostgreSQL's children wipe their environment."""
    try:
        if process.pid == os.getpid():
            return False
        return process.environ().get("HOLDPOINT_HOME") == str(home) or Path(process.cwd()).is_relative_to(home)
    except (psutil.Error, FileNotFoundError):
        return False
