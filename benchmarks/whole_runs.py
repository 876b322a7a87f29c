"""Measures whole runs a second: start, two steps, a gate, its decision, an effect and the end.

    python -m benchmarks.whole_runs [RUNS]

A worker of two processes works on the runs; one process starts them and decides at their gates, so many in hand at a
time. DBOS does the same in the same benchmark: a workflow of two steps, a message to wait for, and a step, worked on by
two processes, and started and sent to by another. The same is measured among growing numbers of stored runs.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks import crowd, peers
from benchmarks.latency import _approve, _open_gate, _reviewer, _start
from benchmarks.scratch import Scratch, make_team

if TYPE_CHECKING:
    from tests.harness.services import Service

IN_HAND, WARM = 40, 60
STORED = (10_000, 100_000, 1_000_000)
LOOK = 0.02  # seconds between two looks for gates and ends
AIM = 100.0
PROCESSES = 2


def main(runs: int = 1000) -> None:
    """Print the rates, and where Holdpoint's processor time goes."""
    with Scratch() as scratch:
        worker = scratch.worker()
        ann = _reviewer()
        _through(ann, WARM)
        scratch.analyze()
        print(f"whole runs, {IN_HAND} in hand at a time (aim >= {AIM:.0f}/s): {_measured(scratch, worker, ann, runs)}")
        seconds = peers.measure(scratch, "peers_dbos", "whole", runs, IN_HAND, PROCESSES)["seconds"]
        print(f"DBOS, the same shape: {runs / seconds:.0f}/s")
        model = _open_gate(_start(ann)).pk
        for stored in STORED:
            _fill(scratch, stored, model)
            _through(ann, WARM)
            print(f"  among {stored:,} stored runs: {_measured(scratch, worker, ann, runs // 2)}", flush=True)


def _measured(scratch: Scratch, worker: Service, ann: Any, runs: int) -> str:
    """Return the rate of so many runs, and the processor time of one."""
    before, began = _spent(scratch, worker.pid), time.monotonic()
    _through(ann, runs)
    took = time.monotonic() - began
    spent = {name: (late - before[name]) * 1000 / runs for name, late in _spent(scratch, worker.pid).items()}
    parts = ", ".join(f"{name} {each:.1f}" for name, each in spent.items())
    return f"{runs / took:.0f}/s; processor ms a run: {parts}"


def _fill(scratch: Scratch, stored: int, model: int) -> None:
    """Store runs up to this number, a tenth of which wait at gates, in other teams."""
    from checkpoints.models import Run

    teams = [make_team(f"Bench {number}").pk for number in range(crowd.TEAMS)]
    more = stored - Run.objects.count()
    crowd.fill(
        scratch.environment["DATABASE_OWNER_URL"], runs=more, gates=more // 10, model=model, crowd=teams
    )  # fmt: skip


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
        for gate in Gate.objects.filter(run_id__in=ids, pk__gt=last, status="open").order_by("pk"):
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
    return float(sum(each.user + each.system for each in times) + times[0].children_user + times[0].children_system)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
