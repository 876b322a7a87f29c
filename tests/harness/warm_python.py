"""Starts Python processes of the project by fork from one that has read its modules: see .warm_server.

What each command needs to start by itself is tried where `make run` and docker compose are.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from config.local.process import tied
from tests.harness.session import ROOT

OURS = ("agents.", "celery", "config.migrate", "config.web", "tests.")  # modules that are started so
SETTINGS = "config.settings"
# Settings with which the project is read, where there are none. Each process reads its own.
READING = {
    "HOLDPOINT_SECRET_KEY": "no-secret-at-all-0123456789-abcdefghij",
    "DATABASE_URL": "postgres://reading@/reading",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}
UNDERSTOOD = {"PYTHONUNBUFFERED", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"}


class Forked:
    """One process that was started so: as much of a `subprocess.Popen` as the tests use."""

    def __init__(self, said: socket.socket) -> None:
        self.said = said
        self.pid = int(said.recv(20))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit code; None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code once it has ended. Raises TimeoutExpired."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        """Kill it, and none of its children."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
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
    """Starts the processes of the project: each from a process that has read the libraries, or all of the project.

    Both are started when they are first needed, and end with this one.
    """

    def __init__(self) -> None:
        self.servers: dict[bool, WarmServer] = {}

    def can(self, command: Sequence[str], env: Mapping[str, str]) -> bool:
        """Tell whether a command is one of Python, with variables for it that are understood here."""
        asked = {name for name, value in env.items() if name.startswith("PYTHON") and value}
        if command[0] != sys.executable or not asked <= UNDERSTOOD or "gevent" in command:  # which is loaded first
            return False
        return command[1] in ("manage.py", "-c") or (command[1] == "-m" and command[2].startswith(OURS))

    def start(self, command: Sequence[str], *, env: Mapping[str, str], files: Sequence[int]) -> Forked:
        """Start a command of Python in this folder. `files`: its standard input, output and errors."""
        project = reads_project(command, env)
        if project not in self.servers:
            self.servers[project] = WarmServer(*(["project"] if project else []))
        return self.servers[project].start(command, env=env, files=files)

    def close(self) -> None:
        """End the processes, and with them those that they started."""
        while self.servers:
            self.servers.popitem()[1].close()


def reads_project(command: Sequence[str], env: Mapping[str, str]) -> bool:
    """Tell whether a command reads all of the project, and with its own settings module."""
    settings = env.get("DJANGO_SETTINGS_MODULE", "")
    if command[1] == "-c":
        return settings == SETTINGS
    return settings in ("", SETTINGS) and command[2:3] != ["agents.examples.sandbox"]


class WarmServer:
    """A process that forks others; it takes its first request once it has read what it is to read."""

    def __init__(self, *words: str) -> None:
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = tied([sys.executable, "-m", "tests.harness.warm_server", str(theirs.fileno()), *words])
            fds, env = [theirs.fileno()], READING | os.environ
            self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, pass_fds=fds)

    def start(self, command: Sequence[str], *, env: Mapping[str, str], files: Sequence[int]) -> Forked:
        """Have a process forked that becomes this command."""
        said, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # number and exit code are a message each
        request = json.dumps({"words": list(command[1:]), "env": dict(env)})
        with told:
            socket.send_fds(self.requests, [request.encode()], [*files, told.fileno()])
        return Forked(said)

    def close(self) -> None:
        """End it, and with it those that it started."""
        self.requests.close()
        self.process.wait()
