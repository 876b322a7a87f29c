"""Measures the memory of each process before and after a thousand runs, and the rate of runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil

from benchmarks.latency import _approve, _reviewer, _start, _until
from benchmarks.scratch import Scratch

if TYPE_CHECKING:
    from tests.harness.services import Service

WARM = 50
BATCH = 50


def main(runs: int = 1000) -> None:
    """Print resident megabytes, of a process and its children together."""
    with Scratch() as scratch:
        worker, sweeper = scratch.worker(), scratch.sweeper()
        web, _ = scratch.web()
        services = {"worker": worker, "sweeper": sweeper, "web": web}
        ann = _reviewer()
        _pass(ann, WARM)
        before = {name: _resident(service) for name, service in services.items()}
        began = time.monotonic()
        for _ in range(runs // BATCH):
            _pass(ann, BATCH)
        took = time.monotonic() - began
        after = {name: _resident(service) for name, service in services.items()}
    for name in services:
        print(f"{name:<10} {before[name]:7.1f} MB -> {after[name]:7.1f} MB after {runs} runs")
    print(f"{runs / took:.1f} runs/s from start through gate and approval to the end, decided by one process")


def _pass(ann: object, count: int) -> None:
    """Start `count` runs, approve each at its gate, and wait for their end."""
    from approvals.models import Gate
    from checkpoints.models import Run

    ids = [_start(ann) for _ in range(count)]  # type: ignore[arg-type]
    for run_id in ids:
        gate = _until(lambda run_id=run_id: Gate.objects.filter(run_id=run_id, status="open").first())
        _approve(gate, ann)  # type: ignore[arg-type]
    _until(lambda: Run.objects.filter(pk__in=ids, status="completed").count() == count, within=60)


def _resident(service: Service) -> float:
    """Return the proportional set size in MB if the kernel reports it, so that shared pages count once."""
    parent = psutil.Process(service.pid)
    total: int = sum(each.memory_full_info().pss for each in [parent, *parent.children(recursive=True)])
    return total / 1e6


if __name__ == "__main__":
    main()
