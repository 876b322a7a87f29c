"""Measures the flow of runs: waiting, deciding, children, timers, checkpoints inside a step, and killed workers.

    python -m benchmarks.flow.flow [--quick] [PART ...]

All parts use the same servers, one after the other; each starts the processes that it needs and stops them.
`--quick` only shows that every part works: its figures say nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.parts.people import make_person, make_team
from benchmarks.parts.scratch import Scratch

from . import decided, gathering, killed, mid_step, timers, waiting

# Part -> its module, its size, and its size for a quick pass. The last leaves 100,000 runs behind.
PARTS = {
    "mid-step": (mid_step, 200, 5),
    "children": (gathering, 1_000, 150),
    "timers": (timers, 10_000, 30),
    "killed": (killed, 50, 2),
    "decided": (decided, 5_000, 20),
    "waiting": (waiting, 100_000, 300),
}
AGENTS = "benchmarks.parts.agents,benchmarks.flow.flow_agents"
LEASE, QUICK_LEASE = 5.0, 1.0  # seconds


def main(arguments: Sequence[str]) -> None:
    """Run the given parts, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flow.flow")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="small sizes, to show that every part works")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.parts) - set(PARTS)):
        parser.error(f"There is no part {', '.join(unknown)}; there are {', '.join(PARTS)}.")
    scratch = Scratch(AGENTS)
    scratch.environment["HOLDPOINT_LEASE"] = str(QUICK_LEASE if given.quick else LEASE)
    with scratch:
        ann = make_person("ann", make_team())
        for name in given.parts or PARTS:
            part, size, quick = PARTS[name]
            print(f"-- {name}", flush=True)
            began = time.monotonic()
            part.measure(scratch, ann, quick if given.quick else size)
            print(f"   {name}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
