"""LangGraph's own tests, as its source distribution ships them: the wheel has none.

The distribution is the pinned one, by the hash in requirements-dev.txt, from wherever pip gets its packages. Only its
tests are unpacked, so that they run against the package that is installed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.harness.session import ROOT

FIXTURES = Path(__file__).with_name("fixtures.py")
CANNOT = "LangGraph's own tests could not be downloaded, so nothing was tested. They need a package index:\n"


def unpacked(folder: Path) -> Path:
    """Return the folder with LangGraph's tests, which use our fixtures; the test fails where they cannot be had."""
    with TemporaryDirectory() as downloads, tarfile.open(_downloaded(Path(downloads))) as source:
        tests = [each for each in source if each.name.split("/")[1:2] == ["tests"]]
        source.extractall(folder, tests, filter="data")
    [made] = folder.iterdir()
    (made / "tests" / "conftest.py").write_text(FIXTURES.read_text())
    (made / "pytest.ini").write_text("[pytest]\n")
    return made


def _downloaded(folder: Path) -> Path:
    found = re.search(r"(?m)^langgraph==.*\n(?: +--hash=.*\n)+", (ROOT / "requirements-dev.txt").read_text())
    assert found, "requirements-dev.txt does not pin langgraph"
    pinned = folder / "pinned.txt"
    pinned.write_text(found.group())
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-deps"]
    ran = subprocess.run(
        [*pip, "--no-binary=langgraph", "--require-hashes", "-r", str(pinned), "-d", str(folder)],
        capture_output=True, text=True,
    )  # fmt: skip
    if ran.returncode:
        pytest.fail(CANNOT + ran.stderr[-1000:], pytrace=False)
    return next(folder.glob("langgraph-*.tar.gz"))
