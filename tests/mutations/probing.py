"""Learns which tests reach each mutation: probes stand at all places in one run of all tests.

A probe writes when it was passed and for which xdist worker, whose name is in the environment of all that the worker
starts. The plugin writes when each test began and ended on its worker. So what a test does in a
server that outlives it counts for that test. A process without the name counts for every worker.
"""

from __future__ import annotations

import ast
import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

from tests.mutations.listed import Mutation
from tests.mutations.sites import STATEMENTS

SHORTEST = 0.05  # seconds in which a process writes of one place once, if they are of the same test
HELPER = """
def _reached(number, seen=set()):
    import os, time
    test, worker = os.environ.get("PYTEST_CURRENT_TEST"), os.environ.get("PYTEST_XDIST_WORKER", "")
    mark = number, os.getpid(), test, int(time.time() / {shortest})
    if mark not in seen:
        seen.add(mark)
        file = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(file, f"{{number}} {{time.time()}} {{worker}}\\n".encode())
        os.close(file)


"""


def plant_probes(mutations: Sequence[Mutation], root: Path, path: Path) -> None:
    """Have every place in the tree at `root` write to `path` when it is passed."""
    for mutation in mutations:
        passed = f"_reached({mutation.number})"
        is_statement = mutation.operator in STATEMENTS
        text = f"{passed}; {mutation.before}" if is_statement else f"({passed}, {mutation.before})[1]"
        mutation.write(root, text)
    for module in {mutation.module for mutation in mutations}:
        source = (root / module).read_text()
        lines, body = source.splitlines(keepends=True), ast.parse(source).body
        first = next(node for node in body if not isinstance(node, ast.Expr) and "__future__" not in ast.unparse(node))
        number = min(each.lineno for each in [first, *getattr(first, "decorator_list", [])]) - 1
        lines.insert(number, HELPER.format(path=str(path), shortest=SHORTEST))
        (root / module).write_text("".join(lines))


def read_reached(passed: str, tests: str) -> tuple[dict[int, dict[str, float]], set[int]]:
    """Return the tests that reach each place, with their seconds, and the places that are passed before any test.

    Both texts are those that the probes and the plugin wrote. A test that failed is no proof of anything and left out.
    """
    spans: dict[str, list[tuple[float, str, float]]] = defaultdict(list)
    for name, began, ended, worker, has_failed in sorted(map(json.loads, tests.splitlines()), key=itemgetter(1)):
        spans[worker].append((began, "" if has_failed else name, ended - began))
    start = min(known[0][0] for known in spans.values())
    reached, before = defaultdict[int, dict[str, float]](dict), set[int]()
    for number, moment, worker in (line.split(" ") for line in passed.splitlines()):
        for known in [spans[worker]] if worker else spans.values():
            index = bisect_right(known, float(moment), key=itemgetter(0)) - 1
            if index >= 0 and known[index][1]:
                reached[int(number)][known[index][1]] = known[index][2]
        if not worker and float(moment) < start:
            before.add(int(number))
    return reached, before
