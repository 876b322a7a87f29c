"""Measures the memory of each process before and after a thousand runs, and the rate of runs."""

from __future__ import annotations

import sys
import time

from benchmarks.marks import mark
from benchmarks.parts.people import make_person, make_team
from benchmarks.parts.processes import resident
from benchmarks.parts.relays import through
from benchmarks.parts.scratch import Scratch

WARM = 50
BATCH = 50
LOOK = 0.01  # seconds


def main(runs: int = 1000) -> None:
    """Print resident megabytes, of a process and its children together."""
    with Scratch() as scratch:
        worker, sweeper = scratch.worker(), scratch.sweeper()
        web, _ = scratch.web()
        services = {"worker": worker, "sweeper": sweeper, "web": web}
        ann = make_person("ann", make_team())
        through(ann, WARM, every=LOOK)
        before = {name: resident(service.pid) for name, service in services.items()}
        began = time.monotonic()
        for _ in range(runs // BATCH):
            through(ann, BATCH, every=LOOK)
        took = time.monotonic() - began
        after = {name: resident(service.pid) for name, service in services.items()}
    for name in services:
        mark(f"{name}, after {runs:,} runs", after[name], "MB", beside={"before": f"{before[name]:.1f} MB"})
    print(f"{runs / took:.1f} runs/s from start through gate and approval to the end, decided by one process")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
