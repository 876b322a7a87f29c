"""Measures external agents: API calls per second, and the delay until they learn a gate's outcome.

One web process with its PostgreSQL and Redis, and the clients on the same machine; the waiting clients are a separate
process. DBOS does the same in the same benchmark, but without HTTP in between.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx

from benchmarks.marks import mark
from benchmarks.outside.waiters import Waiters
from benchmarks.parts.numbers import percentile, spread
from benchmarks.parts.people import make_person, make_team, make_token
from benchmarks.parts.processes import processor, resident
from benchmarks.parts.relays import approve
from benchmarks.parts.scratch import Scratch
from benchmarks.parts.workload import Workload
from benchmarks.peers import environment as peers

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from approvals.models import Gate

AT_ONCE = 8
GATES, SAVES, HEARD, WAITING, TOGETHER, BATCHES, BATCH = 400, 900, 60, 2000, 10, 20, 100
WARM, FIRST = 100, 5  # gates before any is measured, and outcomes that are not
IDLE = 5.0  # seconds in which nothing happens
PROGRAMS = (1, 10, 100)
AIM_POLLED, AIM_STREAMED, AIM_SAVES, AIM_GATES, AIM_GATE, AIM_BATCH = 10.0, 12.0, 400.0, 150.0, 10.0, 600.0
AGENT = "bench-outside"
ACTION = {"id": "wire", "tool": "bank.wire", "arguments": {"to": "ACME", "amount": "120.00"}, "pinned": ["/amount"]}
CARD = {"title": "Wire 120.00 to ACME", "summary": "Invoice 7 is due.", "state": {"invoice": 7}, "actions": [ACTION]}


def main() -> None:
    """Print all of it."""
    with Scratch() as scratch:
        team = make_team()
        owner, reviewer = make_person("owner", team), make_person("reviewer", team)
        sent = make_token(owner, AGENT)
        web, base = scratch.web()
        with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {sent}"}, timeout=60) as client:
            for _ in range(WARM):  # connections, plans and statements
                _post(client, "gates", CARD)
            scratch.analyze()
            _gates(scratch, client)
            _batches(client)
            _programs(base, owner)
            _saves(client)
            words = peers.measure(scratch, "dbos_workflows", "words", HEARD)["words"]
            print(spread("DBOS, sent -> received in another process", words))
            beside = {"DBOS": f"{percentile(words, 50):.1f} ms between processes"}
            _heard(client, Waiters(base, sent, stream=False), reviewer, beside)
            _streamed(client, Waiters(base, sent, stream=True), reviewer, beside)
            _crowd(client, Waiters(base, sent, stream=False), web.pid, reviewer)
            _all_told(client, Waiters(base, sent, stream=False), web.pid, reviewer)


def _gates(scratch: Scratch, client: httpx.Client) -> None:
    """Print the gates opened per second, each with a run, its checkpoint, its plan and its card; and DBOS's workflows.

    Those wait for a message, and are begun in DBOS's own process.
    """
    for at_once, count in ((1, GATES // 2), (AT_ONCE, GATES)):
        waits, took = _many(lambda _: _post(client, "gates", CARD), count, at_once)
        print(spread(f"a gate opened, {at_once} at a time", waits))
        told = peers.measure(scratch, "dbos_workflows", "starts", count, at_once)
        print(spread(f"DBOS, a waiting workflow begun in process, {at_once} at a time", told["each"]))
        p50, rate = f"{percentile(told['each'], 50):.1f} ms", f"{count / told['seconds']:.0f}/s"
        if at_once == 1:
            beside = {"DBOS in process": p50}
            mark("gates opened one at a time, p50", percentile(waits, 50), "ms", most=AIM_GATE, beside=beside)
        else:
            beside = {"DBOS in process": rate}
            mark(f"gates opened {AT_ONCE} at a time", count / took, "/s", least=AIM_GATES, beside=beside)


def _batches(client: httpx.Client) -> None:
    """Print the gates opened per second in calls of a hundred."""
    body = {"gates": [CARD] * BATCH}
    _post(client, "gates/batches", body)
    waits, took = _many(lambda _: _post(client, "gates/batches", body), BATCHES, 1)
    print(spread(f"{BATCH} gates opened in a call", waits))
    mark(f"gates opened {BATCH} a call", len(waits) * BATCH / took, "/s", least=AIM_BATCH)


def _programs(base: str, owner: User) -> None:
    """Print how the cost of a gate grows with the programs that post, each with a token and an agent of its own."""
    for many in PROGRAMS:
        sent = [make_token(owner, f"{AGENT}-{many}-{number}") for number in range(many)]
        headers = [{"Authorization": f"Bearer {each}"} for each in sent]
        with ExitStack() as stack:
            clients = [stack.enter_context(httpx.Client(base_url=base, headers=each, timeout=60)) for each in headers]
            for each in clients:
                _post(each, "gates", CARD)  # its plan, and its connection
            at_once = min(many, AT_ONCE)
            waits, took = _many(partial(_post_as, clients), GATES // 2, at_once)
        print(spread(f"a gate opened by {many} programs, {at_once} at a time", waits))
        mark(f"gates opened by {many} programs, {at_once} at a time", len(waits) / took, "/s")


def _saves(client: httpx.Client) -> None:
    """Print the checkpoints saved per second: each appends a message of 1 KB, beside a document of 50 KB."""
    for at_once, together in ((1, 1), (4, 1), (1, TOGETHER), (4, TOGETHER)):
        work = Workload(SAVES)
        turns = [_begun(client, work) for _ in range(at_once)]

        def save(
            number: int, turns: list[dict[str, Any]] = turns, work: Workload = work, together: int = together
        ) -> None:
            turn = turns[number % len(turns)]
            made = [_checkpoint(work, number * together + each) for each in range(together)]
            body = made[0] if together == 1 else {"checkpoints": made}
            place = "checkpoints" if together == 1 else "checkpoints/batches"
            _post(client, f"runs/{turn['run']}/{place}", {"token": turn["token"], **body})

        waits, took = _many(save, SAVES // together, at_once)
        how = "one a call" if together == 1 else f"{together} a call"
        name = f"checkpoints saved {how}, of {at_once} run{'s' * (at_once > 1)} at a time"
        print(spread(name, waits))
        mark(name, len(waits) * together / took, "/s", least=AIM_SAVES)


def _checkpoint(work: Workload, number: int) -> dict[str, Any]:
    """Make a checkpoint's body: one message, and the agent's cursor in its document."""
    ops = [{"op": "append", "field": "messages", "items": [work.messages[number]]},
           {"op": "set", "field": "cursor", "value": work.cursors[number]}]  # fmt: skip
    return {"step": "work", "ops": ops, "next_step": "work"}


def _heard(client: httpx.Client, waiters: Waiters, reviewer: User, beside: dict[str, str]) -> None:
    """Print the time from a decision's commit until the program that polls has the outcome."""
    waits = []
    with waiters as waiting:
        for _ in range(HEARD + FIRST):
            gate = _open(client)
            waiting.wait_for([gate.pk])
            at = _decide(gate, reviewer)
            waits.append((waiting.next() - at) / 1e6)
    print(spread("outcome -> waiting client, by long poll", waits[FIRST:]))
    mark(
        "outcome -> waiting client by long poll, p50",
        percentile(waits[FIRST:], 50),
        "ms",
        most=AIM_POLLED,
        beside=beside,
    )


def _streamed(client: httpx.Client, waiters: Waiters, reviewer: User, beside: dict[str, str]) -> None:
    """Print the time from a decision's commit until the program that listens has the fact, and then the outcome."""
    facts, waits = [], []
    with waiters as waiting:
        for _ in range(HEARD + FIRST):
            gate = _open(client)
            waiting.wait_for([gate.pk])
            at = _decide(gate, reviewer)
            facts.append((waiting.next() - at) / 1e6)
            waits.append((waiting.next() - at) / 1e6)
    print(spread("outcome -> waiting client, the fact by the stream of events", facts[FIRST:]))
    print(spread("  and then the outcome itself, read as another request", waits[FIRST:]))
    mark(
        "outcome -> waiting client by stream, p50",
        percentile(facts[FIRST:], 50),
        "ms",
        most=AIM_STREAMED,
        beside=beside,
    )


def _crowd(client: httpx.Client, waiters: Waiters, web: int, reviewer: User) -> None:
    """Print the cost of many programs that wait at one web process, each for its own gate; decide some gates."""
    gates = [_open(client) for _ in range(WAITING)]
    before = resident(web)
    with waiters as waiting:
        waiting.wait_for([gate.pk for gate in gates])
        weight = (resident(web) - before) * 1000 / WAITING
        used, began = processor(web), time.monotonic()
        time.sleep(IDLE)
        share = (processor(web) - used) / (time.monotonic() - began)
        print(f"{WAITING} programs wait: {weight:.0f} kB each, {share:.0%} of a core")
        mark(f"of {WAITING:,} waiting programs refused", waiting.refused(), most=0)
        mark(f"memory of the web process for each of {WAITING:,} waiting programs", weight, "kB")
        waits = []
        for gate in gates[:HEARD]:
            at = _decide(gate, reviewer)
            waits.append((waiting.next() - at) / 1e6)
    print(spread("outcome -> the one that waits for it, among them", waits))


def _all_told(client: httpx.Client, waiters: Waiters, web: int, reviewer: User) -> None:
    """Print the time from a decision's commit until each of many programs that wait for that one gate has its outcome.

    The programs' own process reads the answers one after the other, beside the web process.
    """
    gate = _open(client)
    with waiters as waiting:
        waiting.wait_for([gate.pk] * WAITING)
        used, at = processor(web), _decide(gate, reviewer)
        waits = [(waiting.next() - at) / 1e6 for _ in range(WAITING)]
        took = processor(web) - used
    print(f"{spread(f'one outcome -> {WAITING:,} programs', waits)}; {took:.2f} s of the web process's processor")
    mark(f"one outcome -> the last of {WAITING:,} waiting programs", max(waits), "ms")


def _begun(client: httpx.Client, work: Workload) -> dict[str, Any]:
    """Start and claim a run of an agent with one step that repeats."""
    schema = {
        "type": "object",
        "properties": {"messages": {"type": "array", "items": {}}, "document": {}, "cursor": {}},
    }
    step = {"name": "work", "reads": ["cursor"], "writes": ["messages", "cursor"], "jumps": ["work"], "ends": True}
    _post(client, f"agents/{AGENT}/versions", {"version": "1", "state_schema": schema, "steps": [step]})
    run = _post(client, "runs", {"input": {"document": work.document}})["id"]
    return _post(client, f"runs/{run}/claims", {"lease": 600})


def _many(do: Callable[[int], Any], count: int, at_once: int) -> tuple[list[float], float]:
    """Call `do` `count` times; return the milliseconds of each call, and the seconds of all."""

    def timed(number: int) -> float:
        began = time.perf_counter()
        do(number)
        return (time.perf_counter() - began) * 1000

    began = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        waits = list(pool.map(timed, range(count)))
    return waits, time.perf_counter() - began


def _post(client: httpx.Client, address: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(f"/api/{address}", json=body, headers={"Idempotency-Key": secrets.token_hex(8)})
    if answer.status_code != 201:
        raise RuntimeError(f"{answer.status_code}: {answer.text}")
    told: dict[str, Any] = answer.json()
    return told


def _post_as(clients: list[httpx.Client], number: int) -> dict[str, Any]:
    return _post(clients[number % len(clients)], "gates", CARD)


def _open(client: httpx.Client) -> Gate:
    from approvals.models import Gate

    return Gate.objects.get(pk=_post(client, "gates", CARD)["gate"])


def _decide(gate: Gate, reviewer: User) -> int:
    """Approve a gate; return the time of the commit."""
    approve(gate, reviewer)
    return time.monotonic_ns()


if __name__ == "__main__":
    main()
