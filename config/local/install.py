"""Make the virtual environment and put the pinned requirements into it, once per change of the list.

    python3 config/local/install.py .venv requirements-local.txt

Runs on the system's Python before anything is installed, so it imports nothing but the standard library.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path

OLDEST = (3, 11)
QUIET = 2.0  # seconds before a wait starts to say that it goes on
TELL_EVERY = 10.0
FETCHED = ("Collecting", "Processing", "Requirement already satisfied")  # pip's lines: from an index, a folder, before
COUNT = """
import sys
from pip._vendor.packaging.requirements import Requirement
entries = map(Requirement, sys.argv[1:])
print(sum(entry.marker is None or entry.marker.evaluate() for entry in entries))
"""


def main(folder: Path, requirements: Path) -> int:
    """Install `requirements` into `folder`; return the exit code."""
    if sys.version_info < OLDEST:
        return refuse(f"Holdpoint needs Python {OLDEST[0]}.{OLDEST[1]} or newer; this is {sys.version.split()[0]}.")
    stamp = folder / f".{requirements.stem}.installed"
    wanted = digest(requirements)
    if stamp.exists() and stamp.read_text() == wanted:
        return 0
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    log = folder / "install.log"
    python = str(folder / "bin" / "python")
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "-r", str(requirements)]
    with log.open("w") as out:
        pip = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        code = wait(
            pip,
            f"Installing {requirements} into {folder}",
            partial(progress, folder, log, listed(python, requirements)),
        )
    if code:
        tail = "\n".join(log.read_text().splitlines()[-5:])
        return refuse(f"Could not install {requirements}; the end of {log}:\n{tail}")
    stamp.write_text(wanted)
    return 0


def digest(requirements: Path) -> str:
    """Hash the list of requirements and the version of Python."""
    return hashlib.sha256(sys.version.encode() + requirements.read_bytes()).hexdigest()


def listed(python: str, requirements: Path) -> int:
    """Count the packages of the list that are for this system; pip brings what reads their markers."""
    entries = re.findall(r"(?m)^([a-z0-9-]+==[^\\\n]+)", requirements.read_text())
    done = subprocess.run([python, "-c", COUNT, *entries], capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else len(entries)


def progress(folder: Path, log: Path, packages: int) -> str:
    """Say how many of the packages pip has fetched, or installed once it has all of them."""
    lines = log.read_text(errors="replace").splitlines()
    if any(line.startswith("Installing collected packages") for line in lines):
        there = len(list(folder.glob("lib/python*/site-packages/*.dist-info")))
        return f"installed {min(there, packages)} of {packages} packages"
    fetched = sum(line.startswith(FETCHED) for line in lines)
    return f"fetched {min(fetched, packages)} of {packages} packages"


def wait(process: subprocess.Popen[bytes], title: str, progress: Callable[[], str]) -> int:
    """Wait for `process`; print its progress after two seconds, and every ten from then on."""
    started = time.monotonic()
    patience = QUIET
    while True:
        try:
            return process.wait(patience)
        except subprocess.TimeoutExpired:
            patience = TELL_EVERY
            print(f"{title}: {time.monotonic() - started:.0f} s, {progress()}", file=sys.stderr, flush=True)


def refuse(sentence: str) -> int:
    """Print why the installation stops; return the exit code."""
    print(sentence, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
