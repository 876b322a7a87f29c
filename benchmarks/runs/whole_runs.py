"""Measures whole runs a second: start, two steps, a gate, its decision, an effect and the end.

    python -m benchmarks.runs.whole_runs [RUNS]

A worker of two processes works on the runs; one process starts them and decides at their gates, so many in hand at a
time. DBOS does the same in the same benchmark: a workflow of two steps, a message to wait for, and a step, worked on by
two processes, and started and sent to by another. The same is measured among growing numbers of stored runs.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from benchmarks.marks import mark
from benchmarks.parts import crowd
from benchmarks.parts.people import make_person, make_team
from benchmarks.parts.processes import processor
from benchmarks.parts.relays import decide, open_gate, start
from benchmarks.parts.scratch import Scratch
from benchmarks.peers import environment as peers

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from tests.harness.services import Service

IN_HAND, WARM = 40, 60
STORED = (10_000, 100_000, 1_000_000)
LOOK = 0.02  # seconds between two looks for gates and ends
AIM = 100.0
ASKED = "SELECT id FROM approvals_gate WHERE run_id = ANY($1) AND status = 'open' ORDER BY id"
ENDED = "SELECT id FROM checkpoints_run WHERE id = ANY($1) AND status = 'completed'"
PROCESSES = 2


def main(runs: int = 1000) -> None:
    """Print the rates, and where Holdpoint's processor time goes."""
    with Scratch() as scratch:
        worker = scratch.worker()
        ann = make_person("ann", make_team())
        _through(ann, WARM)
        scratch.analyze()
        alone = _measured(scratch, worker, ann, runs)
        seconds = peers.measure(scratch, "dbos_workflows", "whole", runs, IN_HAND, PROCESSES)["seconds"]
        theirs = runs / seconds
        mark(f"whole runs, {IN_HAND} in hand", alone, "/s", least=AIM, beside={"DBOS": f"{theirs:.0f}/s"})
        mark("whole runs over DBOS's", alone / theirs, least=1.0)
        model = open_gate(start(ann)).pk
        for stored in STORED:
            _fill(scratch, stored, model)
            _through(ann, WARM)
            mark(f"whole runs among {stored:,} stored ones", _measured(scratch, worker, ann, runs // 2), "/s")


def _measured(scratch: Scratch, worker: Service, ann: User, runs: int) -> float:
    """Return the rate of so many runs; print the processor time of one."""
    before, began = _spent(scratch, worker.pid), time.monotonic()
    _through(ann, runs)
    took = time.monotonic() - began
    spent = {name: (late - before[name]) * 1000 / runs for name, late in _spent(scratch, worker.pid).items()}
    parts = ", ".join(f"{name} {each:.1f}" for name, each in spent.items())
    print(f"{runs:,} runs: {runs / took:.0f}/s; processor ms a run: {parts}", flush=True)
    return runs / took


def _fill(scratch: Scratch, stored: int, model: int) -> None:
    """Store runs up to this number, a tenth of which wait at gates, in other teams."""
    from checkpoints.models import Run

    teams = [make_team(f"Bench {number}").pk for number in range(crowd.TEAMS)]
    more = stored - Run.objects.count()
    crowd.fill(scratch, runs=more, gates=more // 10, model=model, crowd=teams)


def _through(ann: User, runs: int) -> None:
    """Start runs, approve each at its gate, and wait until all have ended."""
    from checkpoints.postgresql.sql import run_sql

    left, ids, ended = runs, set[int](), 0
    while ended < runs:
        for _ in range(min(left, IN_HAND - len(ids))):
            ids.add(start(ann, "errand"))
            left -= 1
        for (gate,) in run_sql(ASKED, [list(ids)]):
            decide(gate, ann)
        done = {number for (number,) in run_sql(ENDED, [list(ids)])}
        ids -= done
        ended += len(done)
        time.sleep(LOOK)


def _spent(scratch: Scratch, worker: int) -> dict[str, float]:
    """Return the processor seconds of each part until now."""
    assert scratch.postgres.process is not None
    parts = {"worker": worker, "PostgreSQL": scratch.postgres.process.pid}
    return {name: processor(pid) for name, pid in parts.items()} | {"start and decide": time.process_time()}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
