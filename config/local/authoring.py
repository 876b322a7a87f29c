"""Reloads agents that are being written beside a running stack: `make run AGENTS=my_agent`.

The modules are served beside the others, and their folder is watched. When a file in it changes, a process of its own
reads the code first: if it cannot be used, a sentence says why, and the stack goes on as it is; if it can, the
processes that hold code are restarted, and everything else goes on.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from config import examples
from config.local.errors import StackRefused
from config.local.stack import ROOT, Stack

MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
HOLD_CODE = ("web", "worker", "sweeper")  # the processes that have read the agents
LOOK_EVERY = 0.5  # seconds

Files = dict[Path, tuple[int, int]]


def modules_named(words: Sequence[str]) -> list[str]:
    """List the modules' names, typed with commas or blanks between them. Raises StackRefused for an invalid name."""
    names = [name for word in words for name in re.split(r"[,\s]+", word) if name]
    for name in names:
        if not MODULE.fullmatch(name) or name.endswith(".py"):
            raise StackRefused(
                f"AGENTS holds {name!r}; write the module's name: AGENTS=my_agent for my_agent.py beside manage.py, "
                "or in a folder on PYTHONPATH."
            )
    return names


def variables(names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make the stack's processes serve these modules beside the others."""
    if not names:
        return {}
    others = environ.get("HOLDPOINT_AGENTS") or ",".join(examples.AGENTS)
    served = dict.fromkeys([*filter(None, map(str.strip, others.split(","))), *names])
    return {"HOLDPOINT_AGENTS": ",".join(served), "HOLDPOINT_DEVELOPMENT": "1"}


@dataclass
class Author:
    """Watches the modules' folders for one stack."""

    stack: Stack
    names: Sequence[str]
    taken: Files = field(default_factory=dict)  # as the running processes have read them
    seen: Files = field(default_factory=dict)
    looked: float = 0.0

    def begin(self) -> None:
        """Note the state of the files when the processes start."""
        self.taken = self.seen = dict(self.files())

    def look(self) -> None:
        """Reload changed code once no file changes any more: an editor writes a file in several steps."""
        if not self.names or time.monotonic() < self.looked + LOOK_EVERY:
            return
        now = dict(self.files())
        settled, self.seen, self.looked = now == self.seen, now, time.monotonic()
        if settled and now != self.taken:
            self.taken = now
            self.take_up()

    def take_up(self) -> None:
        """Check the code; restart the processes that hold it if it can be used."""
        with self.stack.console.wait("Reading the changed code"):
            code, said = self.read()
        if code:
            self.stack.console.say(f"{said}\nThe code before is still served; save the file again when it is mended.")
            return
        for name in HOLD_CODE:
            self.stack.restart(name)
        self.stack.wait_for_pages(self.stack.revive)
        self.stack.console.say(f"Took up the changed code of {', '.join(self.names)}" + (f"\n{said}" if said else ""))

    def read(self) -> tuple[int, str]:
        """Return 0 if every module can be used, else the exit code, and the text about faults."""
        command = [sys.executable, "manage.py", "agents"]
        done = subprocess.run(command, cwd=ROOT, env=self.stack.environment, capture_output=True, text=True)
        said = [line.removeprefix("CommandError: ") for line in done.stderr.splitlines() if line.strip()]
        return done.returncode, "\n".join(said)

    def files(self) -> Iterator[tuple[Path, tuple[int, int]]]:
        """Yield every file beside a module, and in its package, with its time of change and size."""
        for path in {path for name in self.names for path in self.beside(name)}:
            try:
                if path.is_file():
                    status = path.stat()
                    yield path, (status.st_mtime_ns, status.st_size)
            except OSError:  # an editor's own file, which is gone again
                continue

    def beside(self, name: str) -> Iterator[Path]:
        """Yield the modules in the folder of this one, and all files of its package if it is one."""
        parts = name.split(".")
        for entry in [ROOT, *map(Path, filter(None, self.stack.environment.get("PYTHONPATH", "").split(os.pathsep)))]:
            folder = entry.joinpath(*parts[:-1])
            package = folder / parts[-1]
            if package.is_dir():
                yield from (path for path in package.rglob("*") if "__pycache__" not in path.parts)
            if package.with_suffix(".py").is_file() or package.is_dir():
                yield from folder.glob("*.py")
