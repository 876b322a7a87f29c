"""The sections: each is measured in its own process, on servers of its own.

A section's function takes the servers and a size, and yields figures. Its module is read once Django is set up.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from multiprocessing.queues import SimpleQueue
from typing import NamedTuple

from benchmarks.scratch import Scratch

REFUNDS = "benchmarks.agents,agents.examples.refunds"


class Section(NamedTuple):
    """Where a section's function is, its size, and a size that only shows that it works."""

    function: str  # module.function, in this folder
    size: int
    quick: int
    agents: str = "benchmarks.agents"
    settings: Mapping[str, str] = {}


SECTIONS = {
    "store": Section("stored_states.measure_store", 1_000, 30),  # steps
    "latency": Section("latency.measure_latency", 300, 10),  # decisions
    "whole": Section("latency.measure_whole_runs", 1_000, 40),  # runs
    "memory": Section("latency.measure_memory", 1_000, 50),  # runs
    "rewinds": Section("interruptions.measure_rewinds", 90, 3, settings={"HOLDPOINT_LOG_LEVEL": "WARNING"}),  # agents
    "flow": Section("interruptions.measure_flow", 10_000, 30, settings={"HOLDPOINT_LEASE": "5"}),  # timers
    "pages": Section("pages.measure_pages", 1_000_000, 500, REFUNDS),  # runs
    "weight": Section("pages.measure_weight", 1, 1, REFUNDS),
    "clearing": Section("pages.measure_clearing", 100, 12),  # gates
    "sockets": Section("pages.measure_sockets", 1_000, 60, REFUNDS),  # sockets
    "outside": Section("outside.measure_outside", 400, 24),  # gates
}


def measure_section(name: str, size: int, rows: SimpleQueue[list[str]]) -> None:
    """Measure one section in this process; print each figure as it is reached, and put its row into `rows`."""
    section = SECTIONS[name]
    module, _, function = section.function.partition(".")
    with Scratch(section.agents, section.settings) as scratch:
        measure = getattr(import_module(f"benchmarks.sections.{module}"), function)
        for figure in measure(scratch, size):
            rows.put(figure.cells(name))
            print(f"| {' | '.join(figure.cells(name))} |", flush=True)
