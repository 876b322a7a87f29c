"""The stack: starts and stops its processes in order, and restarts one that dies."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

from config.local import StackRefused, restarts, servers
from config.local.console import Console
from config.local.home import Home
from config.local.process import kill_group, spawn_process, tie_to_parent
from config.local.restarts import Revival
from config.local.servers import Postgres, Redis
from config.web.__main__ import GRACE

ROOT = Path(__file__).resolve().parent.parent.parent
WAITING = 2048  # connections that wait to be taken
ANSWERS_WITHIN = 60.0  # seconds for the web server to answer
REPEATED = 1.0  # seconds in which a signal that comes again is the same Ctrl-C, by way of `make`


class Stopping(Exception):
    """Raised when somebody asks the stack to stop."""


@dataclass
class Child:
    """One process of the application, with its command, the seconds that it has to stop, and what it inherits open."""

    name: str
    process: subprocess.Popen[bytes]
    within: float
    command: tuple[str, ...]
    inherits: tuple[int, ...] = ()


class Stack:
    """The servers and processes that `make run` starts."""

    def __init__(self, home: Home, console: Console, port: int) -> None:
        self.home = home
        self.console = console
        self.port = port
        self.children: list[Child] = []
        self.servers: list[tuple[str, Postgres | Redis]] = []
        self.revivals: defaultdict[str, Revival] = defaultdict(Revival)
        self.environment: dict[str, str] = {}
        self.listener: socket.socket | None = None
        self.asked_at = 0.0
        self.hurry = False

    @property
    def url(self) -> str:
        """Return the address of the pages."""
        return f"http://localhost:{self.port}"

    def listen(self) -> None:
        """Listen on the port, from now on: the web processes inherit the socket, so that none that ends frees the port.

        Raises StackRefused where the port is taken.
        """
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.listener.bind(("127.0.0.1", self.port))
            self.listener.listen(WAITING)
        except OSError:
            raise StackRefused(
                f"Port {self.port} is taken: stop what listens there, or set PORT to another one."
            ) from None

    def listen_for_signals(self) -> None:
        """Take Ctrl-C and SIGTERM: the first stops in order, a second one hurries."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.on_signal)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Stop at the first signal, hurry at the second."""
        now = time.monotonic()
        if not self.asked_at:
            self.asked_at = now
            raise Stopping
        if now - self.asked_at > REPEATED:
            self.hurry = True

    def start_servers(self) -> None:
        """Start the embedded servers, or check those that the environment names, before anything else starts."""
        self.keep_restarts()  # of a stack before it that was killed
        postgres, redis = servers.embedded_servers(self.home)
        if postgres is None:
            self.environment |= servers.external_urls(self.home)
        if redis is None:
            servers.check_redis(os.environ["REDIS_URL"])
        if postgres is not None:
            self.servers.append(("postgres", postgres))
            with self.console.wait("Starting PostgreSQL"):
                self.serve("postgres", postgres)
            self.console.line("postgres", "is up")
            servers.make_database(postgres)
            self.environment |= servers.embedded_urls(postgres)
        if redis is not None:
            self.servers.append(("redis", redis))
            self.serve("redis", redis)
            self.console.line("redis", "is up")
            self.environment |= {"REDIS_URL": redis.url}

    def serve(self, name: str, server: Postgres | Redis) -> None:
        """Start an embedded server. Raises StackRefused where it does not come up."""
        self.revivals[name].started(time.monotonic())
        self.console.pump(name, server.start(subprocess.PIPE).stdout)

    def start(self, name: str, *command: str, within: float = 5.0, inherits: Sequence[int] = ()) -> Child:
        """Start one of the application's processes; it has `within` seconds to stop when asked."""
        self.revivals[name].started(time.monotonic())
        tied_command = tie_to_parent([sys.executable, *command])
        process = spawn_process(tied_command, env=self.environment, out=subprocess.PIPE, cwd=ROOT, inherits=inherits)
        self.console.pump(name, process.stdout)
        child = Child(name, process, within, command, tuple(inherits))
        self.children.append(child)
        return child

    def start_web(self, *more: str, inherits: Sequence[int] = ()) -> Child:
        """Start the web process, on the socket that listens."""
        assert self.listener is not None  # noqa: S101 - the stack listens before it starts anything
        listener = self.listener.fileno()
        command = ("-m", "config.web", "--fd", str(listener))
        child = self.start("web", *command, *more, within=GRACE + 5, inherits=[listener, *inherits])
        child.command, child.inherits = command, (listener,)  # `more` is of this start alone
        return child

    def replace_web(self) -> bool:
        """Start a web process beside the one that runs, which is asked to end once the new one answers.

        Return whether it does. If not, the one before goes on.
        """
        before = [child for child in self.children if child.name == "web"]
        answers, answering = os.pipe()
        with open(answers, "rb", buffering=0) as news:
            try:
                new = self.start_web("--ready-fd", str(answering), inherits=[answering])
            finally:
                os.close(answering)
            with self.console.wait("Waiting for the new pages"):
                ready = select.select([news], [], [], ANSWERS_WITHIN)[0] and news.read(1)
        if not ready:
            self.console.say("The new web process does not answer: the one before goes on.")
        for child in before if ready else [new]:
            self.end(child)
            self.children.remove(child)
        return bool(ready)

    def restart(self, name: str) -> None:
        """Stop one process of the application and start it anew, by the same command."""
        child = next(child for child in self.children if child.name == name)
        self.end(child)
        # Where this fails, the old one is left to be revived.
        self.start(name, *child.command, within=child.within, inherits=child.inherits)
        self.children.remove(child)

    def complete(self, name: str, title: str, *command: str) -> None:
        """Run a command to its end. Raises StackRefused where it fails; its output is shown already."""
        child = self.start(name, *command)
        with self.console.wait(title):
            code = child.process.wait()
        self.children.remove(child)
        if code:
            raise StackRefused(f"{title} failed with exit code {code}.")

    def wait_for_pages(self, look: Callable[[], None]) -> None:
        """Wait until the web server answers, and call `look` meanwhile. Raises StackRefused when it does not answer."""
        until = time.monotonic() + ANSWERS_WITHIN
        with self.console.wait("Waiting for the pages"):
            while time.monotonic() < until:
                look()
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=2):
                        return
                except (urllib.error.URLError, OSError):
                    time.sleep(0.05)
        raise StackRefused(f"The web server did not answer within {ANSWERS_WITHIN:.0f} s.")

    def check_children(self) -> None:
        """Raise StackRefused where a process has ended."""
        running = [(child.name, child.process) for child in self.children]
        running += [(name, server.process) for name, server in self.servers if server.process is not None]
        for name, process in running:
            if (code := process.poll()) is not None:
                ended = f"The {name} process ended with exit code {code}; everything else is stopped."
                words = self.console.last_words(name) if code > 0 else ""  # where it ended by itself, they say why
                raise StackRefused(f"{ended} It said last:\n{words}" if words else ended)

    def supervise(self, look: Callable[[], None]) -> None:
        """Restart parts that end by themselves, for ever; raises Stopping when asked to end.

        `look` is called again and again meanwhile.
        """
        while True:
            self.revive()
            look()
            time.sleep(0.2)

    def revive(self) -> None:
        """Restart each part that has ended, after a pause that grows, and print a line about it."""
        for name, server in self.servers:
            if server.process is None or server.process.poll() is not None:
                code = None if server.process is None else server.process.returncode
                self.start_again(name, code, partial(self.serve, name, server))
        for child in list(self.children):
            if child.process.poll() is not None:
                self.start_again(child.name, child.process.returncode, partial(self.restart, child.name))

    def start_again(self, name: str, code: int | None, start: Callable[[], None]) -> None:
        """Restart one part that has ended, once its pause is over. A refusal is printed, and tried again later."""
        revival, now = self.revivals[name], time.monotonic()
        if revival.due is None:
            ended = "did not start" if code is None else f"ended with exit code {code}"
            self.console.say(f"The {name} process {ended}; it is started again in {revival.ended(now):.0f} s.")
            self.keep_restarts()
        elif now >= revival.due:
            try:
                start()
            except (StackRefused, OSError) as refused:  # such as too little memory for another process
                self.console.say(str(refused))
            self.keep_restarts()

    def keep_restarts(self) -> None:
        """Tell /readyz which parts are down. A disk that is full keeps no part from being started again."""
        try:
            restarts.keep(self.home.path, self.revivals)
        except OSError as error:
            self.console.say(f"/readyz cannot be told which parts are down: {error.strerror}.")

    def stop(self) -> None:
        """Stop the application's processes in the order of their dependencies, then the servers."""
        if self.listener is not None:
            self.listener.close()
        self.revivals.clear()
        self.keep_restarts()
        self.asked_at = self.asked_at or time.monotonic()
        order = ("web", "beat", "sweeper", "worker", "sandbox")
        ranked = sorted(self.children, key=lambda child: order.index(child.name) if child.name in order else -1)
        for child in ranked:
            if child.process.poll() is None:
                self.console.say(f"Stopping {child.name}")
            self.end(child)
        self.children.clear()
        for name, server in reversed(self.servers):
            self.console.say(f"Stopping {name}")
            server.stop()
        self.servers.clear()

    def end(self, child: Child) -> None:
        """Ask one process to stop, wait at most its `within` seconds, then kill what is left of its group."""
        if child.process.poll() is None:
            child.process.terminate()
        until = time.monotonic() + child.within
        with self.console.wait(f"Waiting for {child.name} to finish (Ctrl-C again: at once)"):
            while child.process.poll() is None and time.monotonic() < until and not self.hurry:
                time.sleep(0.02)
        if child.process.poll() is None:
            self.console.say(f"{child.name} did not stop by itself within {child.within:.0f} s and is killed")
        kill_group(child.process)
        child.process.wait()


def any_port(wish: int) -> int:
    """Return `wish` where this machine's port of that number can be listened on, else one that can."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wish))
        except (OSError, OverflowError):
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
