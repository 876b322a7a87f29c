"""The output of `make run`: each process's lines under its name, and a line for each long wait."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import IO

COLOURS = ("36", "32", "33", "35", "34", "96", "92", "95")
WIDTH = 9
QUIET = 2.0  # seconds before a wait starts to say that it goes on
TELL_EVERY = 5.0
LAST = 5  # lines of each process that are repeated when it ends


class Console:
    """Writes whole lines, from any thread, in the order in which they come."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self.colours: dict[str, str] = {}
        self.said: dict[str, deque[str]] = {}
        self.pumps: dict[str, threading.Thread] = {}

    def line(self, name: str, text: str) -> None:
        """Write one line under `name`."""
        with self.lock:
            colour = self.colours.setdefault(name, COLOURS[len(self.colours) % len(COLOURS)])
            prefix = f"{name:<{WIDTH}} |"
            if self.coloured:
                prefix = f"\x1b[{colour}m{prefix}\x1b[0m"
            sys.stdout.write(f"{prefix} {text}\n")
            sys.stdout.flush()

    def say(self, text: str) -> None:
        """Write a message of the stack itself."""
        for line in text.splitlines():
            self.line("holdpoint", line)

    def pump(self, name: str, stream: IO[bytes] | None) -> None:
        """Copy the lines of a process's output, in a thread, until it ends."""
        assert stream is not None  # noqa: S101 - every process is started with a pipe
        last = self.said[name] = deque(maxlen=LAST)

        def copy() -> None:
            with stream:
                for line in stream:
                    text = line.decode(errors="replace").rstrip()
                    last.append(text)
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
        """Write after two seconds, and every five from then on, how long `title` has taken."""
        done = threading.Event()
        started = time.monotonic()

        def tell() -> None:
            pause = QUIET
            while not done.wait(pause):
                pause = TELL_EVERY
                self.say(f"{title}: {time.monotonic() - started:.0f} s")

        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
