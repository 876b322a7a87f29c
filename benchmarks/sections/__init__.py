"""The sections: each is measured in its own process, on servers of its own (`python -m benchmarks.sections NAME`).

A section's function takes the servers and a size, and yields figures. Its module is read once Django is set up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

RELAYS = "benchmarks.agents"
REFUNDS = "benchmarks.agents,agents.examples.refunds"


class Section(NamedTuple):
    """Where a section's function is, its size, and a size that only shows that it works."""

    function: str  # module.function, in this folder
    size: int
    quick: int
    agents: str = RELAYS
    settings: Mapping[str, str] = {}


SECTIONS = {
    "store": Section("stored_states.measure_store", 1_000, 30),  # steps
    "latency": Section("runs.measure_latency", 300, 10),  # decisions
    "whole": Section("runs.measure_whole_runs", 1_000, 40),  # runs
    "memory": Section("runs.measure_memory", 1_000, 50),  # runs
    "rewinds": Section("rewinds.measure_rewinds", 90, 3, settings={"HOLDPOINT_LOG_LEVEL": "WARNING"}),  # random agents
    "flow": Section("flow.measure_flow", 10_000, 30, settings={"HOLDPOINT_LEASE": "5"}),  # timers
    "pages": Section("pages.measure_pages", 1_000_000, 500, REFUNDS),  # runs
    "weight": Section("browsing.measure_weight", 1, 1, REFUNDS),
    "clearing": Section("browsing.measure_clearing", 100, 12),  # gates
    "sockets": Section("sockets.measure_sockets", 1_000, 60, REFUNDS),  # sockets
    "outside": Section("outside.measure_outside", 400, 24),  # gates
}
