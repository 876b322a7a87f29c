"""Starts Python processes of the project by fork from one that has read the libraries: reading them takes a processor
longer than most of what the tests then do with the process.

A process that starts so reads all of the project and its settings itself, under its own variables, in a session of its
own. Only the libraries are there already: those that read no settings, and start no thread, as they are imported.
Whether each command starts by itself is tried where `make run` and docker compose are.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

from config.local.process import tied
from tests.harness.session import ROOT

LIBRARIES = (
    "anyio",
    "asyncio",
    "bs4",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.worker.consumer",
    "django.contrib.postgres.fields",
    "django.core.handlers.asgi",
    "django.core.management",
    "django.db.backends.postgresql.base",
    "django.forms",
    "django.template",
    "django.test",
    "httpx",
    "jsonschema",
    "kombu.transport.redis",
    "limits.aio.storage",
    "num2words",
    "psycopg_pool",
    "pydantic",
    "redis.asyncio",
    "structlog",
    "uvicorn",
    "uvicorn.protocols.http.h11_impl",
    "websockets",
)
UNDERSTOOD = {"PYTHONUNBUFFERED", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"}
MESSAGE = 1 << 18  # bytes of a request at most
PR_SET_PDEATHSIG = 1


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

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, and none of its children."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self.said], [], [], timeout)[0]:
            self.returncode = int(self.said.recv(20))
            self.said.close()
        return self.returncode


class WarmPython:
    """The process that has read the libraries; started when it is first needed, it ends with this one."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def can(self, command: Sequence[str], env: Mapping[str, str]) -> bool:
        """Tell whether a command is one of Python, with variables for it that are understood here."""
        asked = {name for name, value in env.items() if name.startswith("PYTHON") and value}
        return command[0] == sys.executable and command[1] in ("manage.py", "-m") and asked <= UNDERSTOOD

    def start(self, command: Sequence[str], *, env: Mapping[str, str], out: IO[bytes], err: IO[bytes]) -> Forked:
        """Start a command of Python in this folder."""
        if self.process is None:
            self.open()
        said, told = socket.socketpair()
        request = json.dumps({"words": list(command[1:]), "env": dict(env)})
        with told:
            socket.send_fds(self.requests, [request.encode()], [out.fileno(), err.fileno(), told.fileno()])
        return Forked(said)

    def open(self) -> None:
        """Start the process; it takes its first request once it has read the libraries."""
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = tied([sys.executable, "-m", "tests.harness.warm_python", str(theirs.fileno())])
            self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])

    def close(self) -> None:
        """End the process, and with it those that it started."""
        if self.process is not None:
            self.requests.close()
            self.process.wait()
            self.process = None


def serve(requests: socket.socket) -> None:
    """Fork a process for each request, and tell its number and then its exit code; return in that process.

    Ends when nobody is left who could ask.
    """
    waiting = selectors.PollSelector()  # epoll would be shared with those that are forked
    waiting.register(requests, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is requests:
                message, fds, _, _ = socket.recv_fds(requests, MESSAGE, 3)
                if not message:
                    sys.exit()
                told = socket.socket(fileno=fds.pop())
                pid = os.fork()
                if pid == 0:
                    told.close()
                    leave(waiting)
                    become(json.loads(message), *fds)
                    return
                for fd in fds:
                    os.close(fd)
                told.sendall(str(pid).encode())
                waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, told))
            else:
                tell(key, waiting)


def tell(key: selectors.SelectorKey, waiting: selectors.BaseSelector) -> None:
    """Tell the exit code of a process that has ended."""
    pid, told = key.data
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    waiting.unregister(key.fileobj)
    os.close(key.fd)
    with told:
        try:
            told.sendall(str(code).encode())
        except BrokenPipeError:
            return  # nobody wants to know


def leave(waiting: selectors.BaseSelector) -> None:
    """Close, in a process that was forked, what is the first one's."""
    for key in list(waiting.get_map().values()):
        waiting.unregister(key.fileobj)
        if key.data:
            os.close(key.fd)
            key.data[1].close()
        else:
            key.fileobj.close()  # type: ignore[union-attr]
    waiting.close()


def become(request: dict[str, object], out: int, err: int) -> None:
    """Become, in all but its command line, a process that was started by itself."""
    words, env = request["words"], request["env"]
    assert isinstance(words, list)
    assert isinstance(env, dict)
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = words
    sys.path[:1] = [str(ROOT), *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    sys.pycache_prefix = env.get("PYTHONPYCACHEPREFIX") or None
    sys.dont_write_bytecode = bool(env.get("PYTHONDONTWRITEBYTECODE"))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=bool(env.get("PYTHONUNBUFFERED")), line_buffering=stream is sys.stderr)  # type: ignore[union-attr]


def main() -> None:
    """Read the libraries, then serve; go on as what was asked for."""
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a process that was forked would copy every page
    serve(socket.socket(fileno=int(sys.argv[1])))
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
