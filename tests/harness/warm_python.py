"""Starts Python processes of the project by fork from one that has read the libraries: see .warm_server.

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
from typing import IO, Any

from config.local.process import tied
from tests.harness.session import ROOT

OURS = ("agents.", "celery", "config.migrate", "config.web", "tests.")  # modules that are started so
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
    """The process that has read the libraries; started when it is first needed, it ends with this one."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def can(self, command: Sequence[str], env: Mapping[str, str]) -> bool:
        """Tell whether a command is one of Python, with variables for it that are understood here."""
        asked = {name for name, value in env.items() if name.startswith("PYTHON") and value}
        if command[0] != sys.executable or not asked <= UNDERSTOOD or "gevent" in command:  # which is loaded first
            return False
        return command[1] in ("manage.py", "-c") or (command[1] == "-m" and command[2].startswith(OURS))

    def start(self, command: Sequence[str], *, env: Mapping[str, str], out: IO[Any], err: IO[Any]) -> Forked:
        """Start a command of Python in this folder."""
        if self.process is None:
            self.open()
        said, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # number and exit code are a message each
        request = json.dumps({"words": list(command[1:]), "env": dict(env)})
        with told:
            socket.send_fds(self.requests, [request.encode()], [out.fileno(), err.fileno(), told.fileno()])
        return Forked(said)

    def open(self) -> None:
        """Start the process; it takes its first request once it has read the libraries."""
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = tied([sys.executable, "-m", "tests.harness.warm_server", str(theirs.fileno())])
            self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])

    def close(self) -> None:
        """End the process, and with it those that it started."""
        if self.process is not None:
            self.requests.close()
            self.process.wait()
            self.process = None
