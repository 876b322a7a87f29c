"""Processes that a test starts, watches and kills: workers, sweepers, web servers."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

import httpx

from config.local.process import kill_group, spawn_process, stop_process, tie_to_parent
from tests.harness import warm_python
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE, until
from tests.harness.warm_python import Forked, WarmPython

WARM = WarmPython()
IMPATIENT = {"DJANGO_SETTINGS_MODULE": warm_python.IMPATIENT}
Process = subprocess.Popen[bytes] | Forked


class Service:
    """One process with a session of its own; what it says goes to a file.

    `warm`: it may be forked from one that has read the libraries and seldom collects garbage.
    """

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, env: dict[str, str], *, warm: bool = True
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.glob(f"{name}-*.log")))
        self.name = name
        self.path = folder / f"{name}-{number}.log"
        environment = {name: value for name, value in (os.environ | env).items() if name != "DJANGO_ALLOW_ASYNC_UNSAFE"}
        environment |= {"PYTHONUNBUFFERED": "1"}
        with self.path.open("wb") as out, Path(os.devnull).open("rb") as nothing:
            self.process: Process = (
                WARM.start(command, env=environment, files=[nothing.fileno(), out.fileno(), out.fileno()])
                if warm and WARM.can(command, environment)
                else spawn_process(tie_to_parent(command), env=environment, out=out, cwd=ROOT)
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self.path.read_text(errors="replace")

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def says(self, pattern: str, *, within: float = PATIENCE) -> str:
        """Wait until a line of its log matches `pattern`; fail at once, with the log, where it ends before."""

        def line() -> str | None:
            alive = self.alive  # asked before the log is read: what it said last is there once it has ended
            found = re.search(pattern, self.log)
            if found is None and not alive:
                raise AssertionError(
                    f"{self.name} ended with {self.process.returncode} before it said {pattern!r}:\n{self.log}"
                )
            return found.group(0) if found else None

        return until(line, within=within, what=f"{self.name} says {pattern!r}; it said:\n{self.log[-2000:]}") or ""

    def kill(self) -> None:
        """Kill the whole group, as a lost machine would."""
        kill_group(self.process)
        self.process.wait()

    def pause(self) -> None:
        """Stop the whole group's clock (SIGSTOP)."""
        os.killpg(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let the group go on (SIGCONT)."""
        os.killpg(self.pid, signal.SIGCONT)

    def stop(self, *, within: float = PATIENCE) -> bool:
        """Ask it to stop; return whether it did so by itself within `within` seconds."""
        return stop_process(self.process, by=signal.SIGTERM, within=within)


class Talking:
    """A process of this project that answers each line with one; its errors are seen where this one's are."""

    def __init__(self, *command: str, env: dict[str, str]) -> None:
        given, told = os.pipe()
        said, answered = os.pipe()
        self.told, self.said = os.fdopen(told, "w"), os.fdopen(said)
        self.process = WARM.start(command, env=os.environ | env, files=[given, answered, 2])
        os.close(given)
        os.close(answered)

    def tell(self, line: str) -> str:
        """Tell it a line and return its answer; "" where it has ended."""
        self.told.write(line + "\n")
        self.told.flush()
        return self.said.readline()

    def close(self) -> None:
        self.told.close()
        self.process.wait(PATIENCE)
        self.said.close()


def manage(*arguments: str) -> list[str]:
    return [sys.executable, "manage.py", *arguments]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def web_command(port: int) -> list[str]:
    return [sys.executable, "-m", "config.web", "--port", str(port)]


def wait_for_http(service: Service, url: str, *, within: float = PATIENCE) -> None:
    """Wait until `url` answers at all."""
    # One client, which reads no certificates: reading them takes longer than the question.
    with httpx.Client(timeout=PATIENCE, verify=False) as client:  # noqa: S501 - it asks this machine alone

        def answers() -> bool:
            if not service.alive:
                raise AssertionError(f"{service.name} ended with {service.process.returncode}:\n{service.log}")
            try:
                return client.get(url).status_code < 500
            except httpx.TransportError:
                return False

        until(answers, within=within, what=f"{url} answers; {service.name} said:\n{service.log[-2000:]}")


def run(
    *arguments: str, env: dict[str, str] | None = None, within: float = PATIENCE, alone: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command of this project to its end, with what it said on either stream as text.

    `alone`: it gets no variables but those of `env`.
    """
    environment = ({} if alone else dict(os.environ)) | (env or {})
    if not WARM.can(arguments, environment):
        return subprocess.run(
            list(arguments), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=within
        )
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err, Path(os.devnull).open("rb") as nothing:
        process = WARM.start(arguments, env=environment, files=[each.fileno() for each in (nothing, out, err)])
        try:
            code = process.wait(within)
        finally:
            kill_group(process)
            process.wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())
