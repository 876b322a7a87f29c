"""Compares the store with the machine's floor and with LangGraph's stores: alternating rounds, medians over rounds.

    python -m benchmarks.store.save_and_load [STEPS [ROUNDS]]

The floor is one row of 1.2 KB, inserted and committed through a prepared statement. Holdpoint's work goes through the
public `store.save`, in autocommit mode, with its guard and its event. The peers take every other round.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
import uuid
from typing import Any

import psycopg
from django.db import connection

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile
from benchmarks.parts.scratch import Scratch
from benchmarks.parts.workload import Workload
from benchmarks.peers import environment as peers

FLOOR_ROWS = 400
Result = dict[str, float]


def main(steps: int = 1000, rounds: int = 5) -> None:
    """Print the figures and the aims."""
    work = Workload(steps)
    results: dict[str, list[Result]] = {"floor": [], "ours": [], "delta": [], "saver": []}
    with Scratch() as scratch:
        _ours(Workload(100))  # statements prepared, caches warm
        for number in range(rounds):
            results["floor"].append(_floor(scratch))
            results["ours"].append(_ours(work))
            results["floor"].append(_floor(scratch))
            for kind in ("delta", "saver") if number % 2 == 0 else ():  # the saver takes most of a round
                results[kind].append(peers.measure(scratch, "langgraph_stores", kind, steps))
    _report({name: _medians(each) for name, each in results.items()}, steps)


def _medians(each: list[Result]) -> Result:
    return {key: statistics.median(result[key] for result in each) for key in each[0]}


def _report(found: dict[str, Result], steps: int) -> None:
    floor, ours, delta, saver = (found[name] for name in ("floor", "ours", "delta", "saver"))
    print(f"{steps:,} steps, medians      {'steps/s':>9} {'MB':>8} {'load latest':>12}")
    for name, each in (("Holdpoint", ours), ("LangGraph DeltaChannel", delta), ("LangGraph PostgresSaver", saver)):
        print(f"  {name:<24} {each['rate']:9.0f} {each['bytes'] / 1e6:8.2f} {each['load_ms']:9.2f} ms")
    print(f"  floor, insert + commit    p50 {floor['p50']:.3f} ms")
    print(f"  save p50 {ours['p50']:.3f} ms, first tenth {ours['first']:.3f} ms, last tenth {ours['last']:.3f} ms")
    fast, slow = (f"{each['p50']:.3f} ms" for each in (floor, ours))
    mark(
        "save p50 over a bare one-row commit",
        ours["p50"] / floor["p50"],
        most=1.5,
        beside={"save": slow, "commit": fast},
    )
    mark("last tenth's p50 over the first's", ours["last"] / ours["first"], most=1.2)
    for name, each, least in (("DeltaChannel", delta, 3), ("PostgresSaver", saver, 25)):
        beside = {"ours": f"{ours['rate']:.0f}/s", name: f"{each['rate']:.0f}/s"}
        mark(f"saves a second over {name}'s", ours["rate"] / each["rate"], least=least, beside=beside)
    mark("for 1,000 steps, events included", ours["bytes"] / 1e6 / steps * 1000, "MB", most=2.5)
    loads = dict(zip(("ours", "DeltaChannel", "PostgresSaver"), (ours, delta, saver), strict=True))
    faster = min(delta["load_ms"], saver["load_ms"])
    beside = {name: f"{each['load_ms']:.2f} ms" for name, each in loads.items()}
    mark("load of the latest over the faster peer's", ours["load_ms"] / faster, most=0.6, beside=beside)


def _floor(scratch: Scratch) -> Result:
    """Measure the p50 of a bare insert and commit on the same server, in ms."""
    times = []
    with psycopg.connect(scratch.postgres.url("postgres"), autocommit=True) as raw:
        raw.execute("CREATE TABLE IF NOT EXISTS floor (id uuid PRIMARY KEY, body bytea)")
        for _ in range(FLOOR_ROWS):
            row = (uuid.uuid4(), os.urandom(1200))
            began = time.perf_counter()
            raw.execute("INSERT INTO floor VALUES (%s, %s)", row, prepare=True)
            times.append(time.perf_counter() - began)
    return {"p50": percentile(times, 50) * 1e3}


def _ours(work: Workload) -> Result:
    """Measure the work through Holdpoint's store."""
    from checkpoints import store
    from checkpoints.actors import of_agent
    from checkpoints.store import claims
    from checkpoints.values.ops import Append

    run, header, robo, before = a_run(work), store.Header("step", "work", "work"), of_agent("robo"), _size()
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="bench", lease=600)
    assert claim is not None
    head = store.load(run)
    times = []
    for message, cursor in zip(work.messages, work.cursors, strict=True):
        began = time.perf_counter()
        writes = {"messages": Append([message]), "cursor": cursor}
        head = store.save(head, writes, claim=claim, header=header, actor=robo)
        times.append(time.perf_counter() - began)
    loads = []
    for _ in range(9):
        began = time.perf_counter()
        loaded = store.load(run)
        loads.append(time.perf_counter() - began)
    assert loaded.state == head.state
    tenth = max(len(times) // 10, 1)
    return {
        "rate": len(times) / sum(times),
        "bytes": _size() - before,
        "load_ms": statistics.median(loads) * 1e3,
        "p50": percentile(times, 50) * 1e3,
        "first": percentile(times[:tenth], 50) * 1e3,
        "last": percentile(times[-tenth:], 50) * 1e3,
    }


def a_run(work: Workload) -> Any:
    """Start a run with the work's state."""
    from django.contrib.auth.models import Group

    from checkpoints import store
    from checkpoints.actors import SYSTEM
    from checkpoints.runs import plans
    from checkpoints.runs.plans import PlanSpec, StepSpec

    plan = plans.keep(PlanSpec("bench", "1", steps=(StepSpec("work"),)))
    team, _ = Group.objects.get_or_create(name="Bench")
    values = {"messages": [], "document": work.document, "cursor": {}}
    return store.start(plan=plan, team=team, title="Bench", values=values, first_step="work", by=SYSTEM)


def _size() -> int:
    """Return the bytes of the store's tables with their indexes and TOAST."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
            "WHERE relkind = 'r' AND starts_with(relname, 'checkpoints_')"
        )
        return int(cursor.fetchone()[0])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
