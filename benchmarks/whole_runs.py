"""Measures whole runs a second: start, two steps, a gate, its decision, an effect and the end.

    python -m benchmarks.whole_runs [RUNS]

A worker of two processes works on the runs; one process starts them and decides at their gates, so many in hand at a
time. DBOS does the same in the same benchmark: a workflow of two steps, a message to wait for, and a step, worked on by
two processes, and started and sent to by another.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import psutil

from benchmarks import peers
from benchmarks.latency import _approve, _reviewer
from benchmarks.scratch import Scratch

IN_HAND, WARM = 40, 60
LOOK = 0.02  # seconds between two looks for gates and ends
AIM = 100.0
PROCESSES = 2


def main(runs: int = 1000) -> None:
    """Print the rate of both, and where Holdpoint's processor time goes."""
    with Scratch() as scratch:
        worker = scratch.worker()
        ann = _reviewer()
        _through(ann, WARM)
        before, began = _spent(scratch, worker.pid), time.monotonic()
        _through(ann, runs)
        took = time.monotonic() - began
        spent = {name: late - before[name] for name, late in _spent(scratch, worker.pid).items()}
        print(f"whole runs: {runs / took:.0f}/s (aim >= {AIM:.0f}), {IN_HAND} in hand at a time")
        print("  processor ms a run: " + ", ".join(f"{name} {each * 1000 / runs:.1f}" for name, each in spent.items()))
        seconds = peers.measure(scratch, "peers_dbos", "whole", runs, IN_HAND, PROCESSES)["seconds"]
        print(f"DBOS, the same shape: {runs / seconds:.0f}/s")


def _through(ann: Any, runs: int) -> None:
    """Start runs, approve each at its gate, and wait until all have ended."""
    from agents.runs.start import start_run
    from approvals.models import Gate
    from checkpoints.actors import SYSTEM
    from checkpoints.models import Run

    team, left, ids, last = ann.groups.get(), runs, set[int](), 0
    ended = 0
    while ended < runs:
        for _ in range(min(left, IN_HAND - len(ids))):
            ids.add(start_run("errand", {}, by=SYSTEM, team=team).pk)
            left -= 1
        for gate in Gate.objects.filter(pk__gt=last, status="open").order_by("pk"):
            _approve(gate, ann)
            last = gate.pk
        done = set(Run.objects.filter(pk__in=ids, status="completed").values_list("pk", flat=True))
        ids -= done
        ended += len(done)
        time.sleep(LOOK)


def _spent(scratch: Scratch, worker: int) -> dict[str, float]:
    """Return the processor seconds of each part until now."""
    assert scratch.postgres.process is not None
    parts = {"worker": worker, "PostgreSQL": scratch.postgres.process.pid}
    spent = {name: _of_tree(psutil.Process(pid)) for name, pid in parts.items()}
    return spent | {"start and decide": time.process_time()}


def _of_tree(process: psutil.Process) -> float:
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return sum(each.user + each.system for each in times) + times[0].children_user + times[0].children_system


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
