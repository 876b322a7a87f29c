"""Copies of the last commit in which mutations are planted and tests run, so that nobody works in such a tree."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.mutations.listed import ROOT
from tests.mutations.plugin import VARIABLE

MIGRATED = Path(".pytest_cache/migrated")
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutations.plugin"]
MODULES = Path("clients/typescript/node_modules")


@contextmanager
def copied() -> Iterator[Path]:
    """Check the last commit out into a folder that is removed in the end."""
    folder = Path(tempfile.mkdtemp(prefix="mutations-"))
    root = folder / "tree"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", root], cwd=ROOT, check=True)
    try:
        for name in (".venv", ".venv-frameworks"):
            (root / name).symlink_to((ROOT / name).resolve())
        if (ROOT / MODULES).exists():
            subprocess.run(["cp", "-a", ROOT / MODULES, root / MODULES], check=True)
        yield root
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", root], cwd=ROOT, check=True)
        shutil.rmtree(folder)


def run_tests(root: Path, arguments: Sequence[str], tests: Path, log: Path, *, patience: float) -> int | None:
    """Run pytest in a copy; return its exit code, or None where no test ended for `patience` seconds: it is killed.

    The plugin writes each test that ended to `tests`; what pytest says goes to `log`.
    """
    tests.write_text("")
    env = os.environ | {VARIABLE: str(tests)}
    with log.open("w") as out:
        command = [sys.executable, *PYTEST, *arguments]
        process = subprocess.Popen(command, cwd=root, env=env, stdout=out, stderr=out, start_new_session=True)
        try:
            while True:
                try:
                    return process.wait(1)
                except subprocess.TimeoutExpired:
                    if time.time() - tests.stat().st_mtime > patience:
                        return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
