"""Measures the children of one parent: time, statements and processor time of each, for growing numbers of them.

The statements are counted with a worker of one process and without a sweeper: all children are started before the
first one works, so that how many have to wait for their turn does not depend on who is faster. What one more child
costs is the difference between two numbers of children: the parent's own part does not count. The times are taken with
a worker of two processes, and nothing is counted meanwhile.
"""

from __future__ import annotations

import time
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
AT_ONCE = 10  # as many as work at once: all further ones wait for their turn, and cost that too


def measure(scratch: Scratch, ann: User, most: int) -> None:
    """Print what 10 children cost, `most` of them, and a tenth of these."""
    numbers = sorted({AT_ONCE, most // 10, most})
    worker = scratch.worker(1)
    _gathered(ann, AT_ONCE)
    scratch.analyze()
    statements = [_statements(scratch, ann, children) for children in numbers]
    scratch.end(worker)
    worker = scratch.worker()
    took = [_seconds(scratch, worker, ann, children) for children in numbers][-1]
    scratch.end(worker)
    known = list(zip(numbers, statements, strict=True))
    more = [(last - first) / (many - few) for (few, first), (many, last) in pairwise(known)]
    name = f"{most:,} children of one parent gathered"
    mark(name, took, "s", beside={"a child": f"{took * 1000 / most:.1f} ms"})
    mark(f"{name}: statements of one child more", more[-1])
    beside = {f"up to {number:,}": f"{each:.1f}" for number, each in zip(numbers[1:], more, strict=True)}
    mark("statements of one child more, among many over among few", more[-1] / more[0], most=FLAT, beside=beside)


def _statements(scratch: Scratch, ann: User, children: int) -> int:
    with sent(scratch) as counted:
        _gathered(ann, children)
    each, transactions = counted.statements / children, counted.transactions / children
    print(f"{children:6,} children: {each:.1f} statements a child, {transactions:.1f} transactions", flush=True)
    return counted.statements


def _seconds(scratch: Scratch, worker: Service, ann: User, children: int) -> float:
    assert scratch.postgres.process is not None
    parts = {"worker": worker.pid, "PostgreSQL": scratch.postgres.process.pid}
    before, began = {name: processor(pid) for name, pid in parts.items()}, time.monotonic()
    _gathered(ann, children)
    took = time.monotonic() - began
    spent = {name: (processor(pid) - before[name]) * 1000 / children for name, pid in parts.items()}
    told = ", ".join(f"{name} {each:.1f}" for name, each in spent.items())
    print(f"{children:6,} children: {took:.2f} s; a child: {took * 1000 / children:.1f} ms, processor ms: {told}")
    return took


def _gathered(ann: User, children: int) -> None:
    """Start a parent and wait, without polling the database, until it has gathered its children."""
    from benchmarks.parts.agents import told

    from .flow_agents import GATHERED

    run = start(ann, "flow_parent", children=children)
    word = told(GATHERED, within=300)
    assert word is not None, "the parent did not gather its children; is the worker alive?"
    assert int(word) == run
