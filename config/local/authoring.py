"""Reloads agents that are being written beside a running stack: `make run AGENTS=my_agent`.

The modules are served beside the others, and what they import is watched. Imports are followed by their statements,
those inside functions too, and nothing is run: so it works for code that cannot be imported yet, and a module that is
still to be written is watched too. Tests are not, unless an agent imports them. Beside modules, a package's files that
are no Python count, such as its prompts.

 When one of these files changes, a process of
its own reads the code first: if it cannot be used, a sentence says why, and the stack goes on as it is; if it can, the
processes that hold code are replaced, and everything else goes on. The web process is replaced by one that answers
already, so that pages are answered all the time.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from config import examples
from config.local import StackRefused
from config.local.stack import ROOT, Stack

MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
LOOK_EVERY = 0.5  # seconds
PRODUCT = ("agents", "approvals", "checkpoints", "config")
TESTS = {"test", "tests", "__pycache__"}  # folders of a package
READ_WITHIN = 60.0  # seconds; a module may never end to be imported

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


def serving_variables(names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make the stack's processes serve these modules beside the others."""
    if not names:
        return {}
    others = environ.get("HOLDPOINT_AGENTS") or ",".join(examples.AGENTS)
    served = dict.fromkeys([*filter(None, map(str.strip, others.split(","))), *names])
    return {"HOLDPOINT_AGENTS": ",".join(served), "HOLDPOINT_DEVELOPMENT": "1"}


@dataclass
class Author:
    """Watches the files of the modules for one stack."""

    stack: Stack
    names: Sequence[str]
    paths: set[Path] = field(default_factory=set)  # watched, whether they are there or not
    taken: Files = field(default_factory=dict)  # as the running processes have read them
    seen: Files = field(default_factory=dict)
    looked: float = 0.0

    def begin(self) -> None:
        """Note which files the modules have, and their state, before processes read them."""
        on_path = filter(None, self.stack.environment.get("PYTHONPATH", "").split(os.pathsep))
        self.paths = list_imported_files(self.names, [ROOT, *(Path(folder).absolute() for folder in on_path)], ROOT)
        self.taken = self.seen = self.files()

    def look(self) -> None:
        """Reload changed code once no file changes any more: an editor writes a file in several steps."""
        if not self.names or time.monotonic() < self.looked + LOOK_EVERY:
            return
        now = self.files()
        settled, self.seen, self.looked = now == self.seen, now, time.monotonic()
        if settled and now != self.taken:
            self.taken = now
            try:
                self.begin()  # other files may be imported now
                self.take_up()
            except OSError as error:  # such as too little memory for another process
                self.stack.console.say(f"The changed code is not taken up: {error.strerror}. Save the file again.")

    def take_up(self) -> None:
        """Check the code; replace the processes that hold it if it can be used."""
        with self.stack.console.wait("Reading the changed code"):
            code, words = self.read()
        if code:
            self.stack.console.say(f"{words}\nThe code before is still served; save the file again when it is mended.")
            return
        steps: list[Callable[[], bool | None]] = [self.stack.replace_web]
        steps += [partial(self.stack.restart, name) for name in ("worker", "sweeper")]
        for replaced in steps:
            if self.files() != self.taken:  # what is there now was not read: the next look does
                self.stack.console.say("The code has changed once more, and is read before it is taken up.")
                return
            if replaced() is False:
                self.stack.console.say("The code before is still served; save the file again to try once more.")
                return
        self.stack.console.say(f"Took up the changed code of {', '.join(self.names)}" + (f"\n{words}" if words else ""))

    def read(self) -> tuple[int, str]:
        """Return 0 if every module can be used, else the exit code, and the text about faults."""
        command = [sys.executable, "manage.py", "agents"]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=self.stack.environment, capture_output=True, text=True, timeout=READ_WITHIN
            )
        except subprocess.TimeoutExpired:
            return 1, f"{', '.join(self.names)} cannot be imported within {READ_WITHIN:.0f} s. Correct it."
        lines = [line.removeprefix("CommandError: ") for line in done.stderr.splitlines() if line.strip()]
        return done.returncode, "\n".join(lines)

    def files(self) -> Files:
        """Return the time of change and the size of each watched file that is there."""
        files: Files = {}
        for path in self.paths:
            with contextlib.suppress(OSError):  # not there, or an editor replaces it
                status = path.stat()
                if stat.S_ISREG(status.st_mode):
                    files[path] = status.st_mtime_ns, status.st_size
        return files


def list_imported_files(names: Iterable[str], folders: Sequence[Path], root: Path) -> set[Path]:
    """Return the files of these modules and of what they import, there or not, in the folders of PYTHONPATH.

    What belongs to the product in `root` is left out, except beside a module that is named there.
    """
    own = [folder.joinpath(*name.split(".")[:-1]) for name in names if "." in name for folder in folders]
    files: set[Path] = set()
    ahead = [path for name in names for path in places(name, folders)]
    while ahead:
        path = ahead.pop()
        of_product = any(path.is_relative_to(root / name) for name in PRODUCT)
        if path in files or (of_product and not any(path.is_relative_to(folder) for folder in own)):
            continue
        files.add(path)
        for name, beside in imports(path):
            ahead += places(name, [beside] if beside else folders)
    return files | {path for name in names for path in data_files(name, folders)}


def places(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    """Yield where a module and the packages around it may be."""
    parts = name.split(".")
    for folder in folders:
        for length in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:length])
            yield from (place.with_suffix(".py"), place / "__init__.py")


def imports(path: Path) -> Iterator[tuple[str, Path | None]]:
    """Yield the modules that a file imports, each with the folder that it is relative to."""
    try:
        nodes = ast.walk(ast.parse(path.read_bytes()))
    except (OSError, SyntaxError, ValueError):  # not there, or being written
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((name.name, None) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            beside = path.parents[node.level - 1] if 0 < node.level <= len(path.parents) else None
            for name in node.names:  # a name may be a module
                yield ".".join(filter(None, (node.module, name.name))), beside


def data_files(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of a package that are no Python; none of its tests, and none that are hidden."""
    for folder in folders:
        package = folder.joinpath(*name.split("."))
        for path in package.rglob("*") if (package / "__init__.py").is_file() else ():
            parts = path.relative_to(package).parts
            if path.suffix != ".py" and not TESTS.intersection(parts) and not any(p.startswith(".") for p in parts):
                yield path
