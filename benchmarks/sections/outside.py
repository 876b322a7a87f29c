"""Measures external agents: API calls per second, and the delay until they learn a gate's outcome.

One web process with its PostgreSQL and Redis, and the program on the same machine; the one that waits is a process of
its own.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx

from benchmarks.clients import Clients, Program
from benchmarks.driving import approve_gate, make_ann, team_of
from benchmarks.figures import Figure, compute_percentile
from benchmarks.scratch import Scratch
from benchmarks.workload import Workload
from tests.factories.people import bob
from tests.factories.tokens import make_token

AGENT = "bench-outside"
AT_ONCE, BATCH, TOGETHER = 8, 100, 10  # gates at a time, gates a call, checkpoints a call
WARM, FIRST = 100, 5  # gates before any is measured, and outcomes that are not
ACTION = {"id": "wire", "tool": "bank.wire", "arguments": {"to": "ACME", "amount": "120.00"}, "pinned": ["/amount"]}
CARD = {"title": "Wire 120.00 to ACME", "summary": "Invoice 7 is due.", "state": {"invoice": 7}, "actions": [ACTION]}
SCHEMA = {"type": "object", "properties": {"messages": {"type": "array", "items": {}}, "document": {}, "cursor": {}}}
STEP = {"name": "work", "reads": ["cursor"], "writes": ["messages", "cursor"], "jumps": ["work"], "ends": True}


def measure_outside(scratch: Scratch, gates: int) -> Iterator[Figure]:
    """Open so many gates, save checkpoints, and wait for outcomes."""
    owner = make_ann()
    reviewer = bob(team_of(owner))
    _, sent = make_token(owner, team=team_of(owner), agent=AGENT)
    _, base = scratch.start_web()
    with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {sent}"}, timeout=60) as client:
        post = partial(_post, client)
        for _ in range(min(WARM, gates)):  # connections, plans and statements
            post("gates", CARD)
        scratch.analyze()
        yield from _open_gates(post, gates)
        yield from _save_checkpoints(post, gates * 9 // 4)
        for way, stream, most in (("long poll", False, 10), ("stream", True, 12)):
            waits = []
            with Clients(Program, base, sent) as program:
                for _ in range(gates * 3 // 20 + FIRST):
                    gate = post("gates", CARD)["gate"]
                    program.ask("wait_for", gate, stream)
                    approve_gate(gate, reviewer)
                    at = time.monotonic_ns()
                    waits.append((program.ask("outcome") - at) / 1e6)
            p50 = compute_percentile(waits[FIRST:], 50)
            yield Figure(f"outcome -> waiting client by {way}, p50", p50, "ms", most=most)


def _open_gates(post: Callable[..., Any], gates: int) -> Iterator[Figure]:
    """Open gates, each with a run, its checkpoint, its plan and its card."""
    waits, _ = _repeat(lambda _: post("gates", CARD), gates // 2, 1)
    yield Figure("gates opened one at a time, p50", compute_percentile(waits, 50), "ms", most=10)
    _, took = _repeat(lambda _: post("gates", CARD), gates, AT_ONCE)
    yield Figure(f"gates opened {AT_ONCE} at a time", gates / took, "/s", least=150)
    body, calls = {"gates": [CARD] * BATCH}, max(1, gates // 20)
    post("gates/batches", body)
    _, took = _repeat(lambda _: post("gates/batches", body), calls, 1)
    yield Figure(f"gates opened {BATCH} a call", calls * BATCH / took, "/s", least=600)


def _save_checkpoints(post: Callable[..., Any], saves: int) -> Iterator[Figure]:
    """Save checkpoints: each appends a message of 1 KB, beside a document of 50 KB."""
    work = Workload(saves + TOGETHER)
    for runs, together in ((1, 1), (4, 1), (1, TOGETHER), (4, TOGETHER)):
        claims = []
        for _ in range(runs):
            post(f"agents/{AGENT}/versions", {"version": "1", "state_schema": SCHEMA, "steps": [STEP]})
            run = post("runs", {"input": {"document": work.document}})["id"]
            claims.append((run, post(f"runs/{run}/claims", {"lease": 600})["token"]))
        save = partial(_save, post, work, claims, together)
        waits, took = _repeat(save, saves // together, runs)
        how = "one a call" if together == 1 else f"{together} a call"
        name = f"checkpoints saved {how}, of {runs} run{'s' * (runs > 1)} at a time"
        yield Figure(name, len(waits) * together / took, "/s", least=400)


def _save(post: Callable[..., Any], work: Workload, claims: list[tuple[str, Any]], together: int, number: int) -> None:
    """Save the next checkpoints of one of the runs: each a message, and the agent's cursor in its document."""
    run, token = claims[number % len(claims)]
    bodies = []
    for at in range(number * together, (number + 1) * together):
        ops = [{"op": "append", "field": "messages", "items": [work.messages[at]]},
               {"op": "set", "field": "cursor", "value": work.cursors[at]}]  # fmt: skip
        bodies.append({"step": "work", "ops": ops, "next_step": "work"})
    place, body = ("", bodies[0]) if together == 1 else ("/batches", {"checkpoints": bodies})
    post(f"runs/{run}/checkpoints{place}", {"token": token, **body})


def _repeat(call: Callable[[int], Any], count: int, at_once: int) -> tuple[list[float], float]:
    """Call `count` times; return the milliseconds of each call, and the seconds of all."""

    def timed(number: int) -> float:
        began = time.perf_counter()
        call(number)
        return (time.perf_counter() - began) * 1000

    began = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        waits = list(pool.map(timed, range(count)))
    return waits, time.perf_counter() - began


def _post(client: httpx.Client, address: str, body: Any) -> Any:
    answer = client.post(f"/api/{address}", json=body, headers={"Idempotency-Key": secrets.token_hex(8)})
    if answer.status_code != 201:
        raise RuntimeError(f"{answer.status_code}: {answer.text}")
    return answer.json()
