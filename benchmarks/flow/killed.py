"""Measures how long it takes until a run whose worker was killed goes on, with another worker there or a new one.

A worker of ten processes has a run in each, inside a step; then its whole group is killed. The time is from there to
the first line of the next attempt. It has to be shorter than the lease and two seconds: the lease of a worker that
died runs out by itself, and the sweeper looks every second.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile
from benchmarks.parts.relays import start
from benchmarks.parts.scratch import Scratch

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from tests.harness.services import Service

PROCESSES = 10
OVER = 2.0  # seconds beyond the lease


def measure(scratch: Scratch, ann: User, runs: int) -> None:
    """Print the delay of `runs` runs, and of a fifth as many whose worker is started again."""
    from django.conf import settings

    lease, processes = settings.HOLDPOINT_LEASE, min(PROCESSES, runs)
    scratch.sweeper().says("sweeper.ready")
    doomed = scratch.worker(processes)
    scratch.analyze()
    beside_another, alone = list[float](), list[float]()
    for number in range(runs // processes):
        _hold(ann, processes)
        time.sleep(lease / 3 * number / (runs // processes))  # a heartbeat comes after each third of the lease
        other = scratch.worker(processes)
        beside_another += _killed(scratch, doomed, processes)
        doomed = other
    for _ in range(max(1, runs // processes // 5)):
        _hold(ann, processes)
        alone += _killed(scratch, doomed, processes, replaced=True)
        doomed = scratch.services[-1]
    for service in (doomed, next(each for each in scratch.services if each.name == "sweeper")):
        scratch.end(service)
    for name, late in (("beside another", beside_another), ("started again at once", alone)):
        told = {"p50": f"{percentile(late, 50):.2f} s", "longest": f"{max(late):.2f} s", "kills": f"{len(late)}"}
        title = f"worker killed -> its run goes on, a worker {name}, lease {lease:g} s, p99"
        mark(title, percentile(late, 99), "s", most=lease + OVER, beside=told)


def _hold(ann: User, runs: int) -> None:
    """Start runs and wait until each of them is inside its step."""
    from benchmarks.parts.agents import client, told

    from .flow_agents import GO_ON, HELD

    client().delete(GO_ON)
    ids = {start(ann, "flow_holder") for _ in range(runs)}
    while ids:
        word = told(HELD)
        assert word is not None, "not all runs began; is the worker alive?"
        ids.discard(int(word))


def _killed(scratch: Scratch, doomed: Service, runs: int, *, replaced: bool = False) -> list[float]:
    """Kill a worker with its processes; return after how many seconds each run went on."""
    from benchmarks.parts.agents import told

    from .flow_agents import RESUMED

    doomed.kill()
    killed = time.monotonic_ns()
    scratch.services.remove(doomed)
    if replaced:
        scratch.worker(runs)
    late = []
    for _ in range(runs):
        word = told(RESUMED)
        assert word is not None, "a run never went on"
        late.append((int(word.split()[1]) - killed) / 1e9)
    return late
