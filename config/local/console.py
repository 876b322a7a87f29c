"""The output of `make run`: each process's lines under its name, and a line for each long wait.

A start that is well is one line a part, then the address: what the parts say meanwhile is kept, and shown if the start
fails. Warnings and errors of the application's parts are shown at once; a server's are not, since it is asked whether
it is up before it is, and of two processes that write one row first, one learns it from an error.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import IO

from config.local import StackRefused

COLOURS = ("36", "32", "33", "35", "34", "96", "92", "95")
WIDTH = 9
QUIET = 2.0  # seconds before a wait starts to say that it goes on; each pause after that is twice as long
LAST = 5  # lines of each process that are repeated when it ends
START = 1000  # lines of a start that are kept
MATTERS = re.compile(r'\d\d:\d\d:\d\d (WARNING|ERROR|CRITICAL) |.*"level": "(warning|error|critical)"')
SEALS = re.compile(
    r'\d\d:\d\d:\d\d audit\.sealed |.*"event": "audit\.sealed"'
)  # one a second; the home has a file of them


class Console:
    """Writes whole lines, from any thread, in the order in which they come."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self.colours: dict[str, str] = {}
        self.said: dict[str, deque[str]] = {}
        self.pumps: dict[str, threading.Thread] = {}
        self.kept: deque[tuple[str, str]] | None = None  # of a start that is under way

    def line(self, name: str, text: str) -> None:
        """Write one line under `name`."""
        with self.lock:
            colour = self.colours.setdefault(name, COLOURS[len(self.colours) % len(COLOURS)])
            prefix = f"{name:<{WIDTH}} |"
            if self.coloured:
                prefix = f"\x1b[{colour}m{prefix}\x1b[0m"
            sys.stdout.write(f"{prefix} {text}\n")
            sys.stdout.flush()

    @contextlib.contextmanager
    def start(self) -> Iterator[None]:
        """Keep what the processes say in the block, and show it only where the block raises StackRefused."""
        self.kept = deque(maxlen=START)
        try:
            yield
        except StackRefused:
            for pump in self.pumps.values():
                pump.join(0.1)  # of a process that has ended
            kept, self.kept = self.kept, None
            for name, text in kept:
                self.line(name, text)
            raise
        finally:
            self.kept = None

    def say(self, text: str) -> None:
        """Write a message of the stack itself."""
        for line in text.splitlines():
            self.line("holdpoint", line)

    def pump(self, name: str, stream: IO[bytes] | None) -> None:
        """Copy the lines of a process's output, in a thread, until it ends."""
        assert stream is not None  # noqa: S101 - every process is started with a pipe
        last = self.said[name] = deque(maxlen=LAST)

        def copy() -> None:
            matters = False
            with stream:
                for line in stream:
                    text = line.decode(errors="replace").rstrip()
                    last.append(text)
                    matters = bool(MATTERS.match(text)) or (matters and text.startswith("    "))  # with its traceback
                    if (kept := self.kept) is not None and not matters:
                        kept.append((name, text))
                    elif not SEALS.match(text):
                        self.line(name, text)

        self.pumps[name] = threading.Thread(target=copy, name=f"log of {name}", daemon=True)
        self.pumps[name].start()

    def last_words(self, name: str) -> str:
        """Return the last lines of a process that has ended, once all that it wrote is read."""
        if name in self.pumps:
            self.pumps[name].join(1.0)
        return "\n".join(line for line in self.said.get(name, ()) if line.strip())

    @contextlib.contextmanager
    def wait(self, title: str) -> Iterator[None]:
        """Write now and then how long `title` has taken, if it takes more than two seconds."""
        done = threading.Event()
        started = time.monotonic()

        def tell() -> None:
            pause = QUIET
            while not done.wait(pause):
                pause *= 2
                self.say(f"{title}: {time.monotonic() - started:.0f} s")

        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
