"""Starts Python processes of the project by fork from one that has read its modules: see .warm_server.

What each command needs to start by itself is tried where `make run` and docker compose are.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from threading import Lock

from config.local.process import tie_to_parent
from tests.harness.session import ROOT
from tests.harness.warm_start import ask

OURS = ("agents.", "celery", "config.migrate", "config.web", "holdpoint.", "tests.")  # modules that are started so
CLIENTS = ("holdpoint.", "tests.clients.")  # of these, those that live outside
# Agent frameworks have an environment of their own, in which `agents` is OpenAI's package.
FRAMEWORKS = str(ROOT / ".venv-frameworks" / "bin" / "python")
SETTINGS = "config.settings"
IMPATIENT = "tests.harness.impatient_settings"
# Settings with which the project is read, where there are none. Each process reads its own.
READING = {
    "HOLDPOINT_SECRET_KEY": "no-secret-at-all-0123456789-abcdefghij",
    "DATABASE_URL": "postgres://reading@/reading",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}
UNDERSTOOD = {"PYTHONUNBUFFERED", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"}


class Forked:
    """One process that was started so: as much of a `subprocess.Popen` as the tests use."""

    def __init__(self, said: socket.socket) -> None:
        self.said = said
        self.pid = int(said.recv(20))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        """Kill it, and none of its children."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            self.said.settimeout(timeout)
            try:
                self.returncode = int(self.said.recv(20))
            except (BlockingIOError, TimeoutError):
                return None
            self.said.close()
        return self.returncode


class WarmPython:
    """Starts the processes of the project and its clients: each from a process that has read what it is to read.

    Each of those is started when it is first needed, and ends with this one.
    """

    def __init__(self) -> None:
        self.servers: dict[str, WarmServer] = {}
        self.starting = Lock()  # a test starts processes from several threads

    def can(self, command: Sequence[str], env: Mapping[str, str]) -> bool:
        """Tell whether a command is one of Python, with variables for it that are understood here."""
        asked = {name for name, value in env.items() if name.startswith("PYTHON") and value}
        if not asked <= UNDERSTOOD:
            return False
        if command[0] == FRAMEWORKS or (command[0] == sys.executable and command[1].endswith(".py")):
            return True
        return command[0] == sys.executable and (
            command[1] == "-c" or (command[1] == "-m" and command[2].startswith(OURS))
        )

    def start(self, command: Sequence[str], *, env: Mapping[str, str], files: Sequence[int]) -> Forked:
        return Forked(ask(self._server(kind(command, env)).path, command[1:], env, str(ROOT), files))

    def standing(self, *words: str) -> list[str]:
        """Return a command line that stands for a client's process which is forked: see .warm_start."""
        server = self._server(kind([sys.executable, *words], {}))
        return [sys.executable, "-IS", str(ROOT / "tests" / "harness" / "warm_start.py"), server.path, *words]

    def _server(self, kind: str) -> WarmServer:
        with self.starting:
            if kind not in self.servers:
                self.servers[kind] = WarmServer(kind)
            return self.servers[kind]

    def close(self) -> None:
        while self.servers:
            self.servers.popitem()[1].close()


def kind(command: Sequence[str], env: Mapping[str, str]) -> str:
    """Return what a command's process is to have read: see LIBRARIES of .warm_server."""
    if command[0] == FRAMEWORKS:
        return "frameworks"
    script = command[1].endswith(".py") and command[1] != "manage.py"
    if script or (command[1] == "-m" and command[2].startswith(CLIENTS)):
        return "clients"
    settings = env.get("DJANGO_SETTINGS_MODULE", "")
    if command[1] == "-c":
        return "project" if settings == SETTINGS else "servers"
    own = settings in ("", SETTINGS, IMPATIENT) and command[2:3] != ["agents.examples.sandbox"]
    return "project" if own else "servers"


class WarmServer:
    """A process that forks others; it takes its first request once it has read what it is to read."""

    def __init__(self, kind: str) -> None:
        self.folder = TemporaryDirectory(prefix="hp-warm-")
        self.path = f"{self.folder.name}/requests"
        program = [FRAMEWORKS if kind == "frameworks" else sys.executable, "tests/harness/warm_server.py"]
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as requests:
            requests.bind(self.path)
            requests.listen()
            command = tie_to_parent([*program, str(requests.fileno()), kind])
            fds, env = [requests.fileno()], READING | os.environ
            self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, pass_fds=fds)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()
