"""Learns which tests reach each mutation: probes stand at all places in one run of all tests.

A probe writes when it was passed and for which xdist worker, whose name is in the environment of all that the worker
starts. As pytest's plugin, this module writes when each test began and ended on its worker: what a test does in a
server that outlives it counts for that test. A process that does not know its worker counts for all of them.
"""

from __future__ import annotations

import ast
import json
import os
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path

import pytest

from tests.mutations.listed import Mutation
from tests.mutations.sites import STATEMENTS

ENDED = "MUTATIONS_ENDED"  # the file to which the plugin writes
WANTED = "MUTATIONS_WANTED"  # the tests or files that are run, one a line, in this order; all where it is empty
MOST_TESTS = 300  # that are run for a mutation
HELPER = """
def _reached(number, seen=set()):
    import os, time
    test, worker = os.environ.get("PYTEST_CURRENT_TEST"), os.environ.get("PYTEST_XDIST_WORKER", "")
    mark = number, os.getpid(), test, int(time.time() * 20)  # a server serves several tests
    if mark not in seen:
        seen.add(mark)
        file = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(file, f"{{number}} {{time.time()}} {{worker}}\\n".encode())
        os.close(file)


"""
failed: set[str] = set()


def plant_probes(mutations: Sequence[Mutation], root: Path, path: Path) -> None:
    for mutation in mutations:
        call, source = f"_reached({mutation.number})", mutation.before
        mutation.write(root, f"{call}; {source}" if mutation.operator in STATEMENTS else f"({call}, {source})[1]")
    for module in {mutation.module for mutation in mutations}:
        source = (root / module).read_text()
        nodes = [node for node in ast.parse(source).body if not isinstance(node, ast.Expr)]
        first = next(node for node in nodes if "__future__" not in ast.unparse(node))
        lines = source.splitlines(keepends=True)
        place = min(node.lineno for node in (first, *getattr(first, "decorator_list", ()))) - 1
        (root / module).write_text("".join([*lines[:place], HELPER.format(path=str(path)), *lines[place:]]))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(os.environ[WANTED].splitlines())}
    if places:
        ranks = {item: places.get(item.nodeid, places.get(item.nodeid.partition("::")[0], -1)) for item in items}
        items[:] = sorted((item for item in items if ranks[item] >= 0), key=ranks.__getitem__)[:MOST_TESTS]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        failed.add(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    began = time.time()
    yield
    line = [item.nodeid, began, time.time(), os.environ.get("PYTEST_XDIST_WORKER", ""), item.nodeid in failed]
    with Path(os.environ[ENDED]).open("a") as file:
        file.write(json.dumps(line) + "\n")


def read_reached(passed: str, ended: str) -> tuple[dict[int, dict[str, float]], set[int]]:
    """Return the tests that reach each place, with their seconds, and the places that are passed before any test.

    Both texts are those that probes and plugin wrote. A test that failed is left out.
    """
    spans = defaultdict[str, list[tuple[float, str, float]]](list)
    for name, began, end, worker, has_failed in sorted(map(json.loads, ended.splitlines()), key=itemgetter(1)):
        spans[worker].append((began, "" if has_failed else name, end - began))
    start = min(tests[0][0] for tests in spans.values())
    reached, early = defaultdict[int, dict[str, float]](dict), set[int]()
    for number, moment, worker in (line.split(" ") for line in passed.splitlines()):
        for tests in [spans[worker]] if worker else spans.values():
            place = bisect_right(tests, float(moment), key=itemgetter(0)) - 1
            if place >= 0 and tests[place][1]:
                reached[int(number)][tests[place][1]] = tests[place][2]
        if not worker and float(moment) < start:
            early.add(int(number))
    return reached, early
