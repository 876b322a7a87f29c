"""Measures runs by real processes: from a decision to the next step, whole runs a second, and memory.

Times are of the machine's monotonic clock, which all its processes share. DBOS does the same in the same run: a message
to a waiting workflow of another process; and a workflow of two steps, a message and a step, worked on by two processes,
started and sent to by another.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial

from django.conf import settings
from django.contrib.auth.models import User
from websockets.sync.client import connect
from websockets.typing import Origin

from agents.definition.registry import agent_named
from approvals.models import Gate
from benchmarks.agents import run_hop
from benchmarks.driving import approve_gate, completed_runs, make_ann, relay_runs, start_agent, wait_for_gates
from benchmarks.figures import (
    Figure,
    compute_percentile,
    processor_seconds,
    record_commits,
    resident_megabytes,
    wait_for_word,
)
from benchmarks.scratch import Scratch, has_peers, measure_peer
from checkpoints.postgresql.sql import run_sql
from tests.harness.signed_in_clients import session_of
from tests.harness.waiting import until

FIRST_LINE = "decision committed -> next step's first line"
WARM, BATCH = 30, 50
IN_HAND, PROCESSES, LOOK = 40, 2, 0.02  # runs, processes, seconds between two looks for gates and ends
ASKED = "SELECT id FROM approvals_gate WHERE run_id = ANY($1) AND status = 'open' ORDER BY id"
ENDED = "SELECT id FROM checkpoints_run WHERE id = ANY($1) AND status = 'completed'"


def measure_latency(scratch: Scratch, rounds: int) -> Iterator[Figure]:
    """Measure decisions up to the next step's first line, in turn with bare messages, and gates up to a socket."""
    scratch.start_worker()
    scratch.start_sweeper()
    _, base = scratch.start_web()
    ann, warm = make_ann(), min(WARM, rounds)
    _decide_relays(ann, warm)
    scratch.analyze()
    bare, decided = (waits[warm:] for waits in _decide_relays(ann, warm + rounds))
    p50, p95, hop_p50 = compute_percentile(decided, 50), compute_percentile(decided, 95), compute_percentile(bare, 50)
    yield Figure(f"{FIRST_LINE}, p50", p50, "ms")
    yield Figure(f"{FIRST_LINE}, p95", p95, "ms")
    parts = {"ours": f"{p50:.2f} ms", "bare": f"{hop_p50:.2f} ms"}
    yield Figure(f"{FIRST_LINE}, p50 over a bare message", p50 / hop_p50, most=2.6, parts=parts)
    if has_peers():
        words = measure_peer(scratch, "dbos_workflows", "words", warm + rounds)["words"][warm:]
        for percent, ours, most in ((50, p50, 1.0), (95, p95, None)):
            theirs = compute_percentile(words, percent)
            parts = {"ours": f"{ours:.2f} ms", "DBOS": f"{theirs:.2f} ms"}
            yield Figure(f"{FIRST_LINE}, p{percent} over DBOS's message", ours / theirs, most=most, parts=parts)
    facts = _hear_gates(ann, base, warm + rounds // 3)[warm:]
    yield Figure("gate reached -> the fact at an open socket, p50", compute_percentile(facts, 50), "ms", most=50)


def _decide_relays(ann: User, rounds: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of bare messages, and of decisions up to the next step's first line."""
    queue, bare, decided = agent_named("relay").queue, [], []
    for number in range(1, rounds + 1):
        sent = time.monotonic_ns()
        run_hop.apply_async(args=(number,), queue=queue)
        bare.append((int(wait_for_word(f"hop-{number}")) - sent) / 1e6)
        [(run, gate)] = wait_for_gates([start_agent("relay", ann)]).items()
        with record_commits() as commits:
            approve_gate(gate, ann)
        decided.append((int(wait_for_word(f"first-line-{run}")) - commits[-1]) / 1e6)
    return bare, decided


def _hear_gates(ann: User, base: str, rounds: int) -> list[float]:
    """Return the milliseconds from when a relay reached its gate, as its card says, to the fact at a socket."""
    headers, waits = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session_of(ann)}"}, []
    with connect(f"{base.replace('http', 'ws', 1)}/ws/", origin=Origin(base), additional_headers=headers) as socket:
        for _ in range(rounds):
            run = start_agent("relay", ann)
            while json.loads(socket.recv(timeout=30))["kind"] != "gate.opened":
                pass
            arrived, gate = time.monotonic_ns(), Gate.objects.get(run=run)
            waits.append((arrived - int(json.loads(bytes(gate.card))["summary"])) / 1e6)
            approve_gate(gate.pk, ann)
            until(partial(completed_runs, [run]))
    return waits


def measure_whole_runs(scratch: Scratch, runs: int) -> Iterator[Figure]:
    """Measure start, two steps, a gate, its decision, an effect and the end, so many runs in hand at a time."""
    worker, ann = scratch.start_worker(), make_ann()
    _run_errands(ann, runs // 16)
    scratch.analyze()
    assert scratch.postgres.process is not None
    pids = {"worker": worker.pid, "PostgreSQL": scratch.postgres.process.pid}
    before, began = {name: processor_seconds(pid) for name, pid in pids.items()}, time.monotonic()
    _run_errands(ann, runs)
    rate = runs / (time.monotonic() - began)
    spent = {name: (processor_seconds(pid) - before[name]) * 1000 / runs for name, pid in pids.items()}
    yield Figure(f"whole runs, {IN_HAND} in hand", rate, "/s", least=100)
    if has_peers():
        seconds = measure_peer(scratch, "dbos_workflows", "whole", runs, IN_HAND, PROCESSES)["seconds"]
        parts = {"ours": f"{rate:.0f}/s", "DBOS": f"{runs / seconds:.0f}/s"}
        yield Figure("whole runs over DBOS's", rate * seconds / runs, least=1, parts=parts)
    for name, milliseconds in spent.items():
        yield Figure(f"processor time of a whole run: {name}", milliseconds, "ms")


def _run_errands(ann: User, runs: int) -> None:
    """Start runs, approve each at its gate, and wait until all have ended."""
    waiting, active, ended = runs, set[int](), 0
    while ended < runs:
        for _ in range(min(waiting, IN_HAND - len(active))):
            active.add(start_agent("errand", ann))
            waiting -= 1
        for (gate,) in run_sql(ASKED, [list(active)]):
            approve_gate(gate, ann)
        done = {run for (run,) in run_sql(ENDED, [list(active)])}
        active -= done
        ended += len(done)
        time.sleep(LOOK)


def measure_memory(scratch: Scratch, runs: int) -> Iterator[Figure]:
    """Measure the resident megabytes of each process with its children, before and after so many runs."""
    services = {"worker": scratch.start_worker(), "sweeper": scratch.start_sweeper(), "web": scratch.start_web()[0]}
    ann = make_ann()
    relay_runs(ann, BATCH)
    before = {name: resident_megabytes(service.pid) for name, service in services.items()}
    for _ in range(runs // BATCH):
        relay_runs(ann, BATCH)
    for name, service in services.items():
        parts = {"before": f"{before[name]:.1f} MB"}
        yield Figure(f"{name}, after {runs:,} runs", resident_megabytes(service.pid), "MB", parts=parts)
