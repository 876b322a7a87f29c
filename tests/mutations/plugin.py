"""Writes each test that ended to a file, as pytest's plugin; it is read before the settings, so it imports nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ENDED = "MUTATIONS_ENDED"  # names the file
WANTED = "MUTATIONS_WANTED"  # the tests or files that are run, one a line, in this order; all where it is empty
failed: set[str] = set()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the tests that are wanted, in their order."""
    places = {name: place for place, name in enumerate(os.environ[WANTED].splitlines())}
    if places:
        ranks = {item: places.get(item.nodeid, places.get(item.nodeid.partition("::")[0], -1)) for item in items}
        config.hook.pytest_deselected(items=[item for item in items if ranks[item] < 0])
        items[:] = sorted((item for item in items if ranks[item] >= 0), key=ranks.__getitem__)


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
    with Path(os.environ[ENDED]).open("a") as file:
        file.write(json.dumps(line) + "\n")
    return result
