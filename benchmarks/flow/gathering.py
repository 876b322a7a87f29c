"""Measures the children of one parent: time, statements and processor time of each, for growing numbers of them.

Without a sweeper, so that the statements are the workers' alone. What one more child costs is the difference between
two numbers of children, so that the parent's own part does not count.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks.marks import mark
from benchmarks.parts.processes import processor
from benchmarks.parts.relays import start
from benchmarks.parts.scratch import Scratch

from .sent_statements import sent

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from tests.harness.services import Service

FLAT = 1.1


@dataclass
class Cost:
    """The cost of a parent and its children: all of it."""

    children: int
    seconds: float
    statements: int
    transactions: int
    worker: float  # processor seconds
    postgresql: float


def measure(scratch: Scratch, ann: User, most: int) -> None:
    """Print what `most` children cost, a tenth and a hundredth of them."""
    worker = scratch.worker()
    _gathered(ann, 5)
    scratch.analyze()
    costs = [_cost(scratch, worker, ann, max(2, most // part)) for part in (100, 10, 1)]
    scratch.end(worker)
    for each in costs:
        print(f"{each.children:6,} children of one parent: {each.seconds:.2f} s; a child: ", end="")
        parts = [each.seconds * 1000, each.worker * 1000, each.postgresql * 1000, each.statements, each.transactions]
        elapsed, ours, theirs, statements, transactions = (part / each.children for part in parts)
        print(f"{elapsed:.1f} ms, processor ms: worker {ours:.1f}, PostgreSQL {theirs:.1f}; ", end="")
        print(f"{statements:.1f} statements, {transactions:.1f} transactions", flush=True)
    more = [(late.statements - early.statements) / (late.children - early.children) for early, late in pairwise(costs)]
    last, name = costs[-1], f"{most:,} children of one parent gathered"
    mark(name, last.seconds, "s", beside={"a child": f"{last.seconds * 1000 / most:.1f} ms"})
    mark(f"{name}: statements of one child more", more[1])
    beside = {f"up to {cost.children:,}": f"{each:.1f}" for cost, each in zip(costs[1:], more, strict=True)}
    mark("statements of one child more, among many over among few", more[1] / more[0], most=FLAT, beside=beside)


def _cost(scratch: Scratch, worker: Service, ann: User, children: int) -> Cost:
    assert scratch.postgres.process is not None
    parts = (worker.pid, scratch.postgres.process.pid)
    with sent(scratch) as counted:
        before, began = [processor(pid) for pid in parts], time.monotonic()
        _gathered(ann, children)
        took = time.monotonic() - began
        ours, theirs = (processor(pid) - early for pid, early in zip(parts, before, strict=True))
    return Cost(children, took, counted.statements, counted.transactions, ours, theirs)


def _gathered(ann: User, children: int) -> None:
    """Start a parent and wait, without polling the database, until it has gathered its children."""
    from benchmarks.parts.agents import told

    from .flow_agents import GATHERED

    run = start(ann, "flow_parent", children=children)
    word = told(GATHERED, within=300)
    assert word is not None, "the parent did not gather its children; is the worker alive?"
    assert int(word) == run
