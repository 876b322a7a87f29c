"""Measures what runs cost that wait at gates: a pass of the sweeper, and the statements of idle processes.

The passes are made here, one after the other, so that their elapsed time is what they take on a quiet machine; the
processor time is the sweeper's and PostgreSQL's together. The idle processes are measured one at a time, since
PostgreSQL does not see which of them sends a statement.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.marks import mark
from benchmarks.parts import crowd
from benchmarks.parts.people import make_readers
from benchmarks.parts.processes import processor
from benchmarks.parts.relays import open_gate, start
from benchmarks.parts.scratch import Scratch

from .sent_statements import sent

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from tests.harness.services import Service

PASSES, WARM = 20, 10  # after five a prepared statement may be planned for whatever comes
AIM = 20.0  # ms
IDLE, QUICK_IDLE, ENOUGH = 15.0, 1.0, 1_000  # seconds; fewer waiting runs than this are a quick pass


def measure(scratch: Scratch, ann: User, count: int) -> None:
    """Print what a pass costs, and what idle processes cost."""
    worker = scratch.worker()
    model = open_gate(start(ann)).pk
    scratch.end(worker)
    crowd.fill(scratch, runs=count, gates=count, model=model, crowd=make_readers(crowd.TEAMS)[1])
    _a_pass(scratch, count)
    idle = IDLE if count > ENOUGH else QUICK_IDLE
    _idle(scratch, "a sweeper", idle, scratch.sweeper)
    _idle(scratch, "a worker of two processes", idle, scratch.worker)
    _idle(scratch, "a worker beside beat", idle, scratch.worker, scratch.beat)


def _a_pass(scratch: Scratch, count: int) -> None:
    from agents.serving.sweeper import Sweeper

    assert scratch.postgres.process is not None
    sweeper, server = Sweeper(), scratch.postgres.process.pid
    for _ in range(WARM):
        sweeper.sweep_once()
    elapsed, own, theirs = [], time.process_time(), processor(server)
    for _ in range(PASSES):
        began = time.perf_counter()
        done = sweeper.sweep_once()
        elapsed.append((time.perf_counter() - began) * 1000)
        assert not done["expired"], "a deadline passed: this is no idle pass"
    own, theirs = (
        (late - early) * 1000 / PASSES for early, late in ((own, time.process_time()), (theirs, processor(server)))
    )
    beside = {
        "processor: sweeper": f"{own:.1f} ms",
        "PostgreSQL": f"{theirs:.1f} ms",
        "longest": f"{max(elapsed):.1f} ms",
    }
    name = f"{count:,} runs waiting at gates: a pass of the sweeper, median"
    mark(name, statistics.median(elapsed), "ms", most=AIM, beside=beside)


def _idle(scratch: Scratch, name: str, seconds: float, *start: Callable[[], Service]) -> None:
    """Print what these processes, with nothing to do, cost a minute."""
    services = [each() for each in start]
    time.sleep(min(seconds, 5.0))  # they have begun
    assert scratch.postgres.process is not None
    pids = {"itself": services[0].pid, "PostgreSQL": scratch.postgres.process.pid}
    with sent(scratch) as counted:
        before, began = {part: processor(pid) for part, pid in pids.items()}, time.monotonic()
        time.sleep(seconds)
        share = 60 / (time.monotonic() - began)
        spent = {part: (processor(pid) - before[part]) * share for part, pid in pids.items()}
    for service in reversed(services):
        scratch.end(service)
    beside = {part: f"{each:.2f} s" for part, each in spent.items()}
    mark(f"idle, a minute: statements of {name}", round(counted.statements * share), beside=beside)
