"""Measures a LangGraph graph as an agent: from its interrupt to the gate, and from the decision to the graph.

Real processes and the machine's monotonic clock, as in benchmarks.runs.latency. "Visible" is the fact at an open
socket, after which a page shows the gate. "Resumed" is the line after `interrupt()` in the graph's own node.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile, spread
from benchmarks.parts.people import make_person, make_team
from benchmarks.parts.relays import approve, completed, open_gate, start, until
from benchmarks.parts.scratch import Scratch
from benchmarks.runs.latency import WARM, commits, facts, told_at

if TYPE_CHECKING:
    from django.contrib.auth.models import User

AGENT = "graph-relay"
AIM_VISIBLE, AIM_RESUMED = 50.0, 30.0


def main(rounds: int = 200) -> None:
    """Print the latencies."""
    with Scratch(agents="benchmarks.parts.agents,benchmarks.parts.graph_agents") as scratch:
        scratch.worker()
        scratch.sweeper()
        _, base = scratch.web()
        ann = make_person("ann", make_team())
        resumed(ann, WARM)
        scratch.analyze()
        answered = resumed(ann, rounds)
        visible = facts(ann, base, WARM + rounds // 2, agent=AGENT, reached=reached)[WARM:]
    print(spread("decision committed -> graph resumed", answered))
    mark("decision committed -> graph resumed, p50", percentile(answered, 50), "ms", most=AIM_RESUMED)
    print(spread("graph interrupted -> the fact at an open socket", visible))
    mark("graph interrupted -> the fact at an open socket, p50", percentile(visible, 50), "ms", most=AIM_VISIBLE)


def resumed(ann: User, rounds: int) -> list[float]:
    """Measure decisions up to the line after the interrupt, in milliseconds."""
    waits = []
    for _ in range(rounds):
        gate = open_gate(start(ann, AGENT, question="May I go on?"))
        with commits() as committed:
            approve(gate, ann)
        waits.append((told_at(f"resumed-{gate.run_id}") - committed[-1]) / 1e6)
        until(partial(completed, [gate.run_id]))
    return waits


def reached(run_id: int) -> int:
    """Return when the run's graph interrupted."""
    from benchmarks.parts.agents import client

    return int(client().get(f"reached-{run_id}"))  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
