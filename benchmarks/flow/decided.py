"""Measures the way from decision to resumption when many runs are decided at once.

The runs stop at a gate each; then several threads decide all of them back to back, while a worker of two processes
takes them on. A decision's time is its event's, by the database's clock, which is this machine's; a run's resumption is
the first line of the step after its gate.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile
from benchmarks.parts.processes import processor
from benchmarks.parts.relays import completed, decide, start, until
from benchmarks.parts.scratch import Scratch

if TYPE_CHECKING:
    from django.contrib.auth.models import User

THREADS = 4
LOOK = 0.5  # seconds
_OPEN = "SELECT id FROM approvals_gate WHERE run_id = ANY($1) AND status = 'open' ORDER BY id"
_DECIDED = """
SELECT run_id, extract(epoch FROM at)::float8 FROM checkpoints_event WHERE kind = 'gate.closed' AND run_id = ANY($1)
"""


def measure(scratch: Scratch, ann: User, count: int) -> None:
    """Print the delays, and the rates of deciding and of resuming."""
    from checkpoints.postgresql.sql import run_sql

    worker, sweeper = scratch.worker(), scratch.sweeper()
    ids = [start(ann) for _ in range(count)]
    gates = [gate for (gate,) in until(lambda: _all_open(ids), within=300, every=LOOK)]
    scratch.analyze()
    assert scratch.postgres.process is not None
    parts = {"worker": worker.pid, "sweeper": sweeper.pid, "PostgreSQL": scratch.postgres.process.pid}
    before, began = {name: processor(pid) for name, pid in parts.items()}, time.monotonic()
    with ThreadPoolExecutor(THREADS, initializer=_warm) as threads:
        list(threads.map(lambda gate: decide(gate, ann), gates))
    decided = time.monotonic() - began
    until(lambda: len(completed(ids)) == count, within=300, every=LOOK)
    ended = time.monotonic() - began
    spent = {name: (processor(pid) - before[name]) * 1000 / count for name, pid in parts.items()}
    for service in (sweeper, worker):
        scratch.end(service)
    at = dict(run_sql(_DECIDED, [ids]))
    late = [first - at[run] for run, first in _first_lines(ids).items()]
    assert len(at) == len(late) == count, "a run was decided or resumed twice, or never"
    print(f"decided in {decided:.1f} s, ended in {ended:.1f} s; processor ms of each: ", end="")
    print(", ".join(f"{name} {each:.1f}" for name, each in spent.items()), flush=True)
    name = f"{count:,} runs decided at once"
    mark(f"{name}: all ended", ended, "s", beside={"decided": f"{decided:.1f} s", "a second": f"{count / ended:.0f}"})
    told = {"p50": f"{percentile(late, 50):.2f} s", "longest": f"{max(late):.2f} s"}
    mark(f"{name}: decision -> next step's first line, p99", percentile(late, 99), "s", beside=told)


def _all_open(ids: list[int]) -> list[tuple[int]] | None:
    from checkpoints.postgresql.sql import run_sql

    found = run_sql(_OPEN, [ids])
    return found if len(found) == len(ids) else None


def _warm() -> None:
    """Let a thread connect before it is measured."""
    from django.db import connection

    connection.ensure_connection()


def _first_lines(ids: list[int]) -> dict[int, float]:
    """Return the time of the step after each run's gate, in seconds since 1970; forget it."""
    from benchmarks.parts.agents import client

    since = time.time() - time.monotonic()
    pipe = client().pipeline(transaction=False)
    for run in ids:
        pipe.lpop(f"first-line-{run}")
    return {run: int(first) / 1e9 + since for run, first in zip(ids, pipe.execute(), strict=True) if first}
