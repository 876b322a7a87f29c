"""Measures the store: saves and loads beside the machine's floor and LangGraph's stores.

The floor is one row of 1.2 KB, inserted and committed through a prepared statement. Our work goes through the public
`store.save`, in autocommit mode, with its guard and its event. Rounds alternate, and medians over them count; the peers
take every other round, since PostgresSaver takes most of one.
"""

from __future__ import annotations

import os
import statistics
import time
import uuid
from collections.abc import Iterator

import psycopg
from django.contrib.auth.models import Group

from benchmarks.figures import Figure, compute_percentile
from benchmarks.scratch import Scratch, has_peers, measure_peer
from benchmarks.workload import Workload
from checkpoints import store
from checkpoints.actors import SYSTEM, of_agent
from checkpoints.postgresql.sql import run_sql
from checkpoints.runs import plans
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store import Header, claims
from checkpoints.values.ops import Append

ROUNDS, FULL, FLOOR_ROWS, LOADS = 5, 1_000, 400, 9
SIZE = """
SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
WHERE relkind = 'r' AND starts_with(relname, 'checkpoints_')
"""
Result = dict[str, float]


def measure_store(scratch: Scratch, steps: int) -> Iterator[Figure]:
    work, floors, ours, rounds = Workload(steps), list[float](), list[Result](), ROUNDS if steps >= FULL else 1
    peers: dict[str, list[Result]] = {"delta": [], "saver": []} if has_peers() else {}
    _save_and_load(Workload(min(steps, 100)))  # statements prepared, caches warm
    for number in range(rounds):
        floors.append(_commit_rows(scratch))
        ours.append(_save_and_load(work))
        floors.append(_commit_rows(scratch))
        for kind, results in peers.items() if number % 2 == 0 else ():
            results.append(measure_peer(scratch, "langgraph_stores", kind, steps))
    mine, floor = _medians(ours), statistics.median(floors)
    parts = {"save": f"{mine['save_ms']:.3f} ms", "commit": f"{floor:.3f} ms"}
    yield Figure("save p50 over a bare one-row commit", mine["save_ms"] / floor, most=1.5, parts=parts)
    yield Figure("last tenth's p50 over the first's", mine["last"] / mine["first"], most=1.2)
    megabytes = mine["bytes"] / 1e6 / steps * 1000
    yield Figure("for 1,000 steps, events included", megabytes, "MB", most=2.5)
    yield Figure("load of the latest, p50", mine["load_ms"], "ms")
    if not peers:
        return
    delta, saver = _medians(peers["delta"]), _medians(peers["saver"])
    for name, peer, least in (("DeltaChannel", delta, 3), ("PostgresSaver", saver, 25)):
        parts = {"ours": f"{mine['rate']:.0f}/s", name: f"{peer['rate']:.0f}/s"}
        yield Figure(f"saves a second over {name}'s", mine["rate"] / peer["rate"], least=least, parts=parts)
    loads = {"ours": mine["load_ms"], "DeltaChannel": delta["load_ms"], "PostgresSaver": saver["load_ms"]}
    parts = {name: f"{took:.2f} ms" for name, took in loads.items()}
    ratio = mine["load_ms"] / min(delta["load_ms"], saver["load_ms"])
    yield Figure("load of the latest over the faster peer's", ratio, most=0.6, parts=parts)


def _medians(results: list[Result]) -> Result:
    return {key: statistics.median(result[key] for result in results) for key in results[0]}


def _commit_rows(scratch: Scratch) -> float:
    """Return the p50 of a bare insert and commit on the same server, in ms."""
    times = []
    with psycopg.connect(scratch.postgres.url("postgres"), autocommit=True) as bare:
        bare.execute("CREATE TABLE IF NOT EXISTS floor (id uuid PRIMARY KEY, body bytea)")
        for _ in range(FLOOR_ROWS):
            row = (uuid.uuid4(), os.urandom(1200))
            began = time.perf_counter()
            bare.execute("INSERT INTO floor VALUES (%s, %s)", row, prepare=True)
            times.append(time.perf_counter() - began)
    return compute_percentile(times, 50) * 1e3


def _save_and_load(work: Workload) -> Result:
    """Measure the work through Holdpoint's store."""
    plan, robo = plans.keep(PlanSpec("bench", "1", steps=(StepSpec("work"),))), of_agent("robo")
    team, _ = Group.objects.get_or_create(name="Bench")
    values, before = {"messages": [], "document": work.document, "cursor": {}}, _stored_bytes()
    run = store.start(plan=plan, team=team, title="Bench", values=values, first_step="work", by=SYSTEM)
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="bench", lease=600)
    assert claim is not None
    head, header, times, loads = store.load(run), Header("step", "work", "work"), [], []
    for message, cursor in zip(work.messages, work.cursors, strict=True):
        began = time.perf_counter()
        writes = {"messages": Append([message]), "cursor": cursor}
        head = store.save(head, writes, claim=claim, header=header, actor=robo)
        times.append(time.perf_counter() - began)
    for _ in range(LOADS):
        began = time.perf_counter()
        loaded = store.load(run)
        loads.append(time.perf_counter() - began)
    assert loaded.state == head.state
    tenth = max(len(times) // 10, 1)
    cuts = {"save_ms": times, "first": times[:tenth], "last": times[-tenth:], "load_ms": loads}
    medians = {name: compute_percentile(cut, 50) * 1e3 for name, cut in cuts.items()}
    return {"rate": len(times) / sum(times), "bytes": _stored_bytes() - before, **medians}


def _stored_bytes() -> int:
    """Return the bytes of the store's tables with their indexes and TOAST."""
    return int(run_sql(SIZE, [])[0][0])
