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
from tests.mutations.plugin import ENDED, WANTED

MIGRATED = Path(".pytest_cache/migrated")
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutations.plugin"]
MODULES = Path("clients/typescript/node_modules")


@contextmanager
def copied() -> Iterator[Path]:
    """Check the last commit out into a folder that is removed in the end."""
    folder = Path(tempfile.mkdtemp(prefix="mutations-"))
    root = folder / "tree"
    _run("git", "worktree", "add", "--quiet", "--detach", root)
    try:
        for name in (".venv", ".venv-frameworks"):
            (root / name).symlink_to((ROOT / name).resolve())
        if (ROOT / MODULES).exists():
            _run("cp", "-a", ROOT / MODULES, root / MODULES)
        yield root
    finally:
        _run("git", "worktree", "remove", "--force", root)
        shutil.rmtree(folder)


def _run(*command: str | Path) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


def run_tests(
    root: Path, arguments: Sequence[str], ended: Path, log: Path, *, patience: float, wanted: Sequence[str] = ()
) -> int | None:
    """Run pytest in a copy; return its exit code, or None where no test ended for `patience` seconds: it is killed.

    The plugin writes each test that ended to `ended`; what pytest says goes to `log`. `wanted`: see the plugin.
    """
    ended.write_text("")
    env = os.environ | {ENDED: str(ended), WANTED: "\n".join(wanted)}
    with log.open("w") as out:
        command = [sys.executable, *PYTEST, *arguments]
        process = subprocess.Popen(command, cwd=root, env=env, stdout=out, stderr=out, start_new_session=True)
        try:
            while True:
                try:
                    return process.wait(1)
                except subprocess.TimeoutExpired:
                    if time.time() - ended.stat().st_mtime > patience:
                        return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
