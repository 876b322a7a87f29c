"""Compares a LangGraph graph on HoldpointSaver with the same graph on LangGraph's own stores: alternating rounds.

    python -m benchmarks.store.graph_threads [STEPS [ROUNDS]]

The same graph and the same work, durable at each step; ours in this process, as in a Celery worker. "list" is a list
that is written as a whole, "async" the same in an event loop, "delta" the same list in a DeltaChannel, "messages" one
under add_messages. Two graphs show what can be reached at all: `bare` has a checkpointer that keeps nothing, and so is
what LangGraph itself takes; `floor` has one that commits one row of 1.2 KB at each step, and nothing else. The marks
are given for the whole, and for the checkpointer's own part, the time of a step in its put and put_writes. The peers
take every other round, in an environment of their own.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections import defaultdict
from itertools import pairwise
from typing import Any

import psycopg

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile
from benchmarks.parts.scratch import Scratch
from benchmarks.parts.workload import Workload
from benchmarks.peers import environment as peers

Result = dict[str, float]
AIMS = (("list", "list", 20), ("async", "async", 20), ("messages", "messages", 20), ("delta", "delta", 3),
        ("list", "delta", 3))  # fmt: skip
KINDS = {"list": "saver", "async": "async", "delta": "delta", "messages": "messages"}


def main(steps: int = 1000, rounds: int = 3) -> None:
    """Print the figures and the aims."""
    work = Workload(steps)
    found: dict[str, list[Result]] = defaultdict(list)
    with Scratch() as scratch:
        ours(Workload(100), "saver", scratch)  # statements prepared, caches warm
        for number in range(rounds):
            for name, kind in KINDS.items():
                if kind != "async":
                    found[f"bare {name}"].append(limit(work, kind))
                    found[f"floor {name}"].append(limit(work, kind, scratch.environment["DATABASE_OWNER_URL"]))
                found[name].append(ours(work, kind, scratch))
                if number % 2 == 0:
                    found[f"peer {name}"].append(peers.measure(scratch, "langgraph_stores", kind, steps))
    print(f"  load {os.getloadavg()[0]:.1f}")
    _report({name: {key: statistics.median(each[key] for each in of) for key in of[0]} for name, of in found.items()})


def _report(found: dict[str, Result]) -> None:
    for name, each in found.items():
        own = f"{each['own_ms']:8.3f} ms in the saver" if "own_ms" in each else ""
        told = f"{each['bytes'] / 1e6:8.2f} MB {each['load_ms']:8.2f} ms to load" if "bytes" in each else ""
        print(f"  {name:<14} {each['rate']:8.0f} steps/s {own} {told}")
    for kind, peer, least in AIMS:
        _compare(found, kind, peer, least)
    mine = found["list"]
    mark("last tenth's p50 over the first's", mine["last"] / mine["first"], most=1.3)
    beside = {name: f"{found[name]['bytes'] / 1e6:.1f} MB" for name in ("delta", "peer list", "peer delta")}
    mark("bytes for the steps, pending writes included", mine["bytes"] / 1e6, "MB", beside=beside)
    beside = {name: f"{found[name]['load_ms']:.1f} ms" for name in ("delta", "peer list", "peer delta")}
    mark("load of the newest state", mine["load_ms"], "ms", beside=beside)


def _compare(found: dict[str, Result], kind: str, peer: str, least: float) -> None:
    mine, theirs = found[kind], found[f"peer {peer}"]
    beside = {"ours": f"{mine['rate']:.0f}/s", "theirs": f"{theirs['rate']:.0f}/s"}
    for name, what in (("floor", "one bare commit a step"), ("bare", "LangGraph alone")):
        if most := found.get(f"{name} {kind}"):
            beside[what] = f"{most['rate']:.0f}/s, {most['rate'] / theirs['rate']:.1f} times theirs"
    name = f"{kind}: checkpoints a second over those of the peer's {peer}"
    mark(name, mine["rate"] / theirs["rate"], least=least, beside=beside)
    if "own_ms" in mine and "own_ms" in theirs:
        own = {"ours": f"{mine['own_ms']:.3f} ms", "theirs": f"{theirs['own_ms']:.3f} ms"}
        name = f"{kind}: time in put and put_writes of the peer's {peer} over ours"
        mark(name, theirs["own_ms"] / mine["own_ms"], least=least, beside=own)


def ours(work: Workload, kind: str, scratch: Scratch) -> Result:
    """Run the work on our saver, in a thread of its own."""
    from django.contrib.auth.models import Group
    from holdpoint.langgraph import HoldpointSaver

    from agents.threads.local import InProcess
    from benchmarks.peers.langgraph_stores import run_async, size, timed

    team, _ = Group.objects.get_or_create(name="Bench")
    made, config = InProcess(agent="bench", team=team), _config(f"{kind} {time.monotonic_ns()}")
    if kind == "async":
        return {"rate": work.steps / asyncio.run(run_async(kind, work, HoldpointSaver(made), config))}
    url, saver = scratch.environment["DATABASE_OWNER_URL"], timed(HoldpointSaver)(made)
    before = size(url)
    found = _run(work, kind, saver, config)
    saver.close()
    return {**found, "bytes": size(url) - before}


def limit(work: Workload, kind: str, url: str = "") -> Result:
    """Run the work with a checkpointer that keeps nothing, or with a `url` that commits one row at each step."""
    from langgraph.checkpoint.memory import InMemorySaver

    from benchmarks.peers.langgraph_stores import timed

    raw = psycopg.connect(url, autocommit=True) if url else None
    if raw:
        raw.execute("CREATE TABLE IF NOT EXISTS floor (step bigint, content bytea)")
    content = os.urandom(1200)

    class Nothing(InMemorySaver):
        """Takes every checkpoint, and keeps none."""

        def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            if raw:
                raw.execute("INSERT INTO floor VALUES (%s, %s)", (metadata["step"], content), prepare=True)
            return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}

        def put_writes(self, *args: Any, **kwargs: Any) -> None:
            return None

    found = _run(work, kind, timed(Nothing)(), _config("limit"), loads=0)
    if raw:
        raw.close()
    return {"rate": found["rate"], "own_ms": found["own_ms"]}


def _run(work: Workload, kind: str, saver: Any, config: Any, loads: int = 9) -> Result:
    from benchmarks.peers.langgraph_stores import build, first_of

    starts: list[float] = []

    def noted(step: int) -> bool:
        starts.append(time.perf_counter())
        return False

    graph = build(kind, work, saver, noted)
    began = time.perf_counter()
    graph.invoke(first_of(kind, work), {**config, "recursion_limit": work.steps + 20}, durability="sync")
    took, own = time.perf_counter() - began, sum(saver.spent) / work.steps * 1e3
    times = [after - before for before, after in pairwise(starts)]
    tenth, loaded = max(len(times) // 10, 1), []
    for _ in range(loads):
        began = time.perf_counter()
        state = graph.get_state(config)
        loaded.append(time.perf_counter() - began)
        assert len(state.values["messages"]) == work.steps, "the saver did not keep every message"
    return {
        "rate": work.steps / took,
        "own_ms": own,
        "load_ms": statistics.median(loaded or [0.0]) * 1e3,
        "first": percentile(times[:tenth], 50),
        "last": percentile(times[-tenth:], 50),
    }


def _config(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
