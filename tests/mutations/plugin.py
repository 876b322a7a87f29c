"""Writes each test that ended to a file, as pytest's plugin; it is read before the settings, so it imports nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

VARIABLE = "MUTATIONS_TESTS"  # names the file
failed: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep which tests failed."""
    if report.failed:
        failed.add(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Write when a test began and ended, on which worker, and whether it failed."""
    began = time.time()
    result = yield
    line = [item.nodeid, began, time.time(), os.environ.get("PYTEST_XDIST_WORKER", ""), item.nodeid in failed]
    with Path(os.environ[VARIABLE]).open("a") as file:
        file.write(json.dumps(line) + "\n")
    return result
