"""A process that has read the libraries and forks others: reading them takes a processor longer than most tests do.

A process that starts so is in a session of its own and reads its settings itself, under its own variables. The
libraries are there already: those that read no settings, and start no thread, as they are imported. Where this is
started with the word `project`, so are the project's modules, and the settings are forgotten that they were read with:
none of them keeps any. What does is left out, and read by each process.

It runs in the environment of the agent frameworks too, and reads nothing of the project there.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import NamedTuple

SERVERS = (
    "anyio", "asyncio", "bs4", "celery.apps.worker", "celery.bin.celery", "celery.concurrency.prefork",
    "celery.worker.consumer", "django.contrib.postgres.fields", "django.core.handlers.asgi", "django.core.management",
    "django.db.backends.postgresql.base", "django.forms", "django.template", "django.test", "httpx", "jsonschema",
    "kombu.transport.redis", "limits.aio.storage", "num2words", "psycopg_pool", "pydantic", "redis.asyncio",
    "structlog", "uvicorn", "uvicorn.protocols.http.h11_impl", "websockets",
)  # fmt: skip
# The modules that web processes, workers and the sweeper read besides Django's apps; config.asgi keeps settings.
PROJECT = (
    "agents.management.commands.sweeper", "agents.management.commands.worker", "agents.tasks", "config.housekeeping",
    "config.messages", "config.urls", "config.web.pages", "config.web.wire",
)  # fmt: skip
LIBRARIES = {
    "servers": SERVERS,
    "project": SERVERS,
    "clients": (
        "holdpoint.langgraph",
        "holdpoint.mcp.gateway.command",
        "holdpoint.mcp.hook",
        "holdpoint.mcp.server",
        "holdpoint.terminal.commands",
        "langgraph.graph",
        "mcp.client.stdio",
        "uvicorn",
    ),
    "frameworks": ("holdpoint.openai_agents", "holdpoint.pydantic_ai"),
}
MESSAGE = 1 << 18  # bytes of a request at most
PR_SET_PDEATHSIG = 1
CLIENT = "clients/python/src"


def read_project() -> dict[str, str]:
    """Read the project's modules and forget its settings; return the variables that reading it sets."""
    before = dict(os.environ)
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django = importlib.import_module("django")
    django.setup()
    for name in PROJECT:
        importlib.import_module(name)
    forget_settings()
    return {name: value for name, value in os.environ.items() if name not in before}


def forget_settings() -> None:
    conf, connections = importlib.import_module("django.conf"), importlib.import_module("django.db").connections
    for each in connections.all(initialized_only=True):
        del connections[each.alias]
    connections._settings = None
    vars(connections).pop("settings", None)
    conf.settings._wrapped = conf.empty
    del sys.modules["config.settings"], sys.modules["config"].settings


def serve(requests: socket.socket) -> None:
    """Fork a process for each request, and tell its number and then its exit code; return in that process.

    Whoever asks by a connection has the process until it ends: it is killed where that connection is closed before.
    """
    waiting = selectors.PollSelector()  # epoll would be shared with those that are forked
    waiting.register(requests, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is requests:
                asked, _ = requests.accept()
                message, fds, _, _ = socket.recv_fds(asked, MESSAGE, 4)
                if not message:
                    asked.close()
                    continue
                pid = os.fork()
                if pid == 0:
                    asked.close()
                    leave(waiting)
                    become(json.loads(message), fds)
                    return
                for fd in fds:
                    os.close(fd)
                process = Process(pid, os.pidfd_open(pid), asked)
                waiting.register(process.ends, selectors.EVENT_READ, process)
                waiting.register(asked, selectors.EVENT_READ, process)
                process.tell(pid)
            elif key.fileobj is key.data.asked:
                waiting.unregister(key.data.asked)  # nobody waits for it any more
                signal.pidfd_send_signal(key.data.ends, signal.SIGKILL)
            else:
                key.data.ended(waiting)


class Process(NamedTuple):
    """A process that was forked: its number, what tells that it ends, and who asked for it."""

    pid: int
    ends: int
    asked: socket.socket

    def tell(self, number: int) -> None:
        with suppress(BrokenPipeError):  # nobody wants to know
            self.asked.sendall(str(number).encode())

    def ended(self, waiting: selectors.BaseSelector) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        waiting.unregister(self.ends)
        os.close(self.ends)
        if self.asked in waiting.get_map():
            waiting.unregister(self.asked)
        self.tell(code)
        self.asked.close()


def leave(waiting: selectors.BaseSelector) -> None:
    """Close, in a process that was forked, what is the first one's."""
    for key in list(waiting.get_map().values()):
        waiting.unregister(key.fileobj)
        if isinstance(key.fileobj, int):
            os.close(key.fileobj)
        else:
            key.fileobj.close()  # type: ignore[attr-defined]
    waiting.close()


def become(request: dict[str, object], files: list[int]) -> None:
    """Become, in all but its command line, a process that was started by itself."""
    words, env, folder = request["words"], request["env"], request["folder"]
    assert isinstance(words, list)
    assert isinstance(env, dict)
    assert isinstance(folder, str)
    os.setsid()
    os.chdir(folder)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = words
    home = os.path.dirname(os.path.abspath(words[0])) if words[0].endswith(".py") else os.getcwd()
    sys.path[:1] = [home, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    sys.pycache_prefix = env.get("PYTHONPYCACHEPREFIX") or None
    sys.dont_write_bytecode = bool(env.get("PYTHONDONTWRITEBYTECODE"))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=bool(env.get("PYTHONUNBUFFERED")), line_buffering=stream is sys.stderr)  # type: ignore[union-attr]


def main() -> None:
    kind = sys.argv[2]
    sys.path[:1] = [os.getcwd()] if kind in ("servers", "project") else [os.path.join(os.getcwd(), CLIENT)]
    for name in LIBRARIES[kind]:
        importlib.import_module(name)
    told = read_project() if kind == "project" else {}
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()  # a collection in a process that was forked would copy every page
    gc.set_threshold(50_000, 20, 100)  # such processes live for seconds
    serve(socket.socket(fileno=int(sys.argv[1])))
    for name, value in told.items():
        os.environ.setdefault(name, value)
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif sys.argv[0] == "-c":
        exec(compile(sys.argv.pop(1), "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - as Python does
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
