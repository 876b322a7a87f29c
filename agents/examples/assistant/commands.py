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
from dataclasses import dataclass, field
from functools import cache

KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")  # of the environment
PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"
HEAD, TAIL = 10_000, 6_000  # bytes of its output that are told, from its beginning and from its end
TIE = ("--pdeathsig", "KILL")  # of util-linux's setpriv: prctl(2), PR_SET_PDEATHSIG
_BLOCK = 64 * 1024


@dataclass
class Said:
    """What a command says, of which the middle is dropped where it is too long."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    size: int = 0

    def add(self, block: bytes) -> None:
        self.size += len(block)
        room = HEAD - len(self.head)
        self.head += block[:room]
        self.tail = (self.tail + block[max(room, 0) :])[-TAIL:]

    @property
    def text(self) -> str:
        """All of it, or its two ends and how much is between them."""
        dropped = self.size - len(self.head) - len(self.tail)
        between = f"\n… {dropped:,} bytes are left out here …\n".encode() if dropped else b""
        return (bytes(self.head) + between + bytes(self.tail)).decode(errors="replace")


def run(argv: list[str], *, folder: str, seconds: float) -> str:
    """Run a command, and return how it ended and what it said. Never raises for what the command does."""
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb", 0) as pipe:
        try:
            process = subprocess.Popen(
                [*_tie(), *argv], cwd=folder, env=_environment(folder), stdin=subprocess.DEVNULL, stdout=writes,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            return f"It did not start: {argv[0]}: {why}."
        finally:
            os.close(writes)
        said, until = Said(), time.monotonic() + seconds
        try:
            ended = _listen(process, pipe.fileno(), said, until)
        finally:  # whatever ends this, a time limit of the runtime's own among it, nothing of it stays
            _kill(process)
    ending = _ending(process.returncode) if ended else f"It was ended after {seconds:g} seconds."
    return f"{ending}\n{said.text}".strip()


def _listen(process: subprocess.Popen[bytes], pipe: int, said: Said, until: float) -> bool:
    """Read what it says until it has ended; False where that took too long."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := until - time.monotonic()) > 0:
            # Looked at now and then: something that it left behind may hold the pipe open.
            if selector.select(min(left, 0.1)):
                block = os.read(pipe, _BLOCK)
                said.add(block)
                if not block:
                    break
            elif process.poll() is not None:
                return True
    try:
        process.wait(max(until - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the command and all that it started in its session's group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all of it has ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ending(code: int) -> str:
    if code >= 0:
        return f"It ended with exit code {code}."
    try:
        return f"It was ended by {signal.Signals(-code).name}."
    except ValueError:
        return f"It was ended by signal {-code}."


def _environment(folder: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT if os.environ.get(name)}
    return {"PATH": PLAIN_PATH, **kept, "HOME": folder, "PWD": folder, "TERM": "dumb"}


@cache
def _tie() -> tuple[str, ...]:
    """Return what to put before a command so that it dies with its parent; empty if the machine has no such tool."""
    tool = shutil.which("setpriv")
    if tool is None or subprocess.run([tool, *TIE, "true"], capture_output=True).returncode:
        return ()
    return (tool, *TIE, "--")
