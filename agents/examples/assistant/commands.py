"""Runs a command for the assistant: in its folder, without a shell, with limits on its time and its output.

It gets only a few plain variables of this process's environment, so no key and no password; a session of its own, whose
whole group is killed at the time limit and at its end; and no input. Output beyond the limit is read and dropped, so
that it never waits for a full pipe. When the worker dies it is killed too, where `setpriv` can tie it.

It runs as the worker's own account, and may read all that this account may. To prevent that, give the assistant's
workers an account, or a container, of their own: docs/run.md says how.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from functools import cache
from typing import Any

KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")  # of the environment
PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"
HEAD, TAIL = 10_000, 6_000  # bytes of its output that are told, from its beginning and from its end
TIE = ("--pdeathsig", "KILL")  # of util-linux's setpriv: prctl(2), PR_SET_PDEATHSIG


class Output:
    """What a command says, of which the middle is dropped where it is too long."""

    def __init__(self) -> None:
        self.head, self.tail, self.size = bytearray(), bytearray(), 0

    def add(self, block: bytes) -> None:
        room = HEAD - len(self.head)
        self.size += len(block)
        self.head += block[:room]
        self.tail = (self.tail + block[max(room, 0) :])[-TAIL:]

    @property
    def text(self) -> str:
        dropped = self.size - len(self.head) - len(self.tail)
        between = f"\n… {dropped:,} bytes are left out here …\n".encode() if dropped else b""
        return (bytes(self.head) + between + bytes(self.tail)).decode(errors="replace")


def run(argv: list[str], *, folder: str, seconds: float) -> str:
    """Run a command, and return how it ended and what it said. Never raises for what the command does."""
    kept = {name: os.environ[name] for name in KEPT if os.environ.get(name)}
    env = {"PATH": PLAIN_PATH, **kept, "HOME": folder, "PWD": folder, "TERM": "dumb"}
    try:
        process = subprocess.Popen(
            [*_tie(), *argv], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, bufsize=0,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        return f"It did not start: {argv[0]}: {getattr(error, 'strerror', None) or error}."
    output = Output()
    try:
        ended = _listen(process, process.stdout, output, time.monotonic() + seconds)
    finally:  # whatever ends this, a time limit of the runtime's own among it, nothing of it stays
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all of it has ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    ending = f"It ended with exit code {process.returncode}."
    if process.returncode < 0:
        ending = f"It was ended by {signal.Signals(-process.returncode).name}."
    return f"{ending if ended else f'It was ended after {seconds:g} seconds.'}\n{output.text}".strip()


def _listen(process: subprocess.Popen[bytes], said: Any, output: Output, until: float) -> bool:
    """Read what it says until it has ended; False where that took too long."""
    with said as pipe, selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := until - time.monotonic()) > 0:
            # Looked at now and then: something that it left behind may hold the pipe open.
            if selector.select(min(left, 0.1)):
                block = os.read(pipe.fileno(), 64 * 1024)
                output.add(block)
                if not block:
                    break
            elif process.poll() is not None:
                return True
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(until - time.monotonic(), 0))
        return True
    return False


@cache
def _tie() -> tuple[str, ...]:
    """Return what to put before a command so that it dies with its parent; empty if the machine has no such tool."""
    tool = shutil.which("setpriv")
    if tool is None or subprocess.run([tool, *TIE, "true"], capture_output=True).returncode:
        return ()
    return (tool, *TIE, "--")
