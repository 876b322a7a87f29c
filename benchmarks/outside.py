"""Measures external agents: API calls per second, and the delay until they learn a gate's outcome.

One web process with its PostgreSQL and Redis, and the clients on the same machine; the waiting clients are a separate
process. DBOS does the same in the same benchmark, but without HTTP in between.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx

from benchmarks import peers
from benchmarks.memory import _resident
from benchmarks.numbers import spread
from benchmarks.scratch import Scratch, make_team
from benchmarks.waiters import Waiters
from benchmarks.workload import Workload

if TYPE_CHECKING:
    from approvals.models import Gate

AT_ONCE = 8
GATES, SAVES, HEARD, WAITING, TOGETHER, BATCHES, BATCH = 400, 900, 60, 1000, 10, 20, 100
WARM = 100
PROGRAMS = (1, 10, 100)
AIM_POLLED, AIM_STREAMED, AIM_SAVES, AIM_GATES, AIM_GATE, AIM_BATCH = 10.0, 12.0, 400.0, 150.0, 10.0, 600.0
AGENT = "bench-outside"
ACTION = {"id": "wire", "tool": "bank.wire", "arguments": {"to": "ACME", "amount": "120.00"}, "pinned": ["/amount"]}
CARD = {"title": "Wire 120.00 to ACME", "summary": "Invoice 7 is due.", "state": {"invoice": 7}, "actions": [ACTION]}


def main() -> None:
    """Print all of it."""
    with Scratch() as scratch:
        sent = _token()
        web, base = scratch.web()
        with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {sent}"}, timeout=60) as client:
            for _ in range(WARM):  # connections, plans and statements
                _post(client, "gates", CARD)
            scratch.analyze()
            _gates(client)
            _batches(client)
            _peer(scratch)
            _programs(base)
            _saves(client)
            _heard(client, base, sent, stream=False)
            _heard(client, base, sent, stream=True)
            _crowd(client, base, sent, web)


def _gates(client: httpx.Client) -> None:
    """Print the gates opened per second: each with a run, its checkpoint, its plan and its card."""
    for at_once in (1, AT_ONCE):
        waits, took = _many(lambda _: _post(client, "gates", CARD), GATES // (2 if at_once == 1 else 1), at_once)
        aim = f" (aim >= {AIM_GATES:.0f})" if at_once > 1 else ""
        print(f"gates opened, {at_once} at a time: {len(waits) / took:.0f}/s{aim}")
        print(spread("  each" if at_once > 1 else f"  each (aim p50 <= {AIM_GATE:.0f})", waits))


def _batches(client: httpx.Client) -> None:
    """Print the gates opened per second in calls of a hundred."""
    body = {"gates": [CARD] * BATCH}
    _post(client, "gates/batches", body)
    waits, took = _many(lambda _: _post(client, "gates/batches", body), BATCHES, 1)
    print(f"gates opened, {BATCH} a call: {len(waits) * BATCH / took:.0f}/s (aim >= {AIM_BATCH:.0f})")
    print(spread("  each call", waits))


def _programs(base: str) -> None:
    """Print how the cost of a gate grows with the programs that post, each with a token and an agent of its own."""
    for many in PROGRAMS:
        sent = [_issue(f"{AGENT}-{many}-{number}") for number in range(many)]
        headers = [{"Authorization": f"Bearer {each}"} for each in sent]
        with ExitStack() as stack:
            clients = [stack.enter_context(httpx.Client(base_url=base, headers=each, timeout=60)) for each in headers]
            for each in clients:
                _post(each, "gates", CARD)  # its plan, and its connection
            at_once = min(many, AT_ONCE)
            waits, took = _many(partial(_post_as, clients), GATES // 2, at_once)
        print(f"gates opened by {many} programs, {at_once} at a time: {len(waits) / took:.0f}/s")
        print(spread("  each", waits))


def _peer(scratch: Scratch) -> None:
    """Print the same for DBOS: workflows that wait for a message, and the message."""
    told = peers.measure(scratch, "peers_dbos", "starts", GATES, AT_ONCE)
    print(f"DBOS, waiting workflows begun in process, {AT_ONCE} at a time: {GATES / told['seconds']:.0f}/s")
    print(spread("  each", told["each"]))
    told = peers.measure(scratch, "peers_dbos", "words", HEARD)
    print(spread("DBOS, sent -> received in another process", told["words"]))


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
        print(f"checkpoints saved, {how}, of {at_once} run{'s' * (at_once > 1)} at a time: "
              f"{len(waits) * together / took:.0f}/s (aim >= {AIM_SAVES:.0f})")  # fmt: skip
        print(spread("  each call", waits))


def _checkpoint(work: Workload, number: int) -> dict[str, Any]:
    """Make a checkpoint's body: one message, and the agent's cursor in its document."""
    ops = [{"op": "append", "field": "messages", "items": [work.messages[number]]},
           {"op": "set", "field": "cursor", "value": work.cursors[number]}]  # fmt: skip
    return {"step": "work", "ops": ops, "next_step": "work"}


def _heard(client: httpx.Client, base: str, sent: str, *, stream: bool) -> None:
    """Print the time from a decision's commit until the program has it."""
    facts, waits = [], []
    for _ in range(HEARD + 5):
        gate = _open(client)
        with Waiters(base, sent, [gate.pk], stream=stream) as waiting:
            waiting.ready()
            at = _decide(gate)
            if stream:
                facts.append((waiting.next() - at) / 1e6)
            waits.append((waiting.next() - at) / 1e6)
    if stream:
        print(
            spread(
                f"outcome -> waiting client, the fact by the stream of events (aim p50 <= {AIM_STREAMED:.0f})",
                facts[5:],
            )
        )
        print(spread("  and then the outcome itself, read as another request", waits[5:]))
        return
    print(spread(f"outcome -> waiting client, by long poll (aim p50 <= {AIM_POLLED:.0f})", waits[5:]))


def _crowd(client: httpx.Client, base: str, sent: str, web: Any) -> None:
    """Print the cost of a thousand programs that wait at one web process, each for its own gate; decide some gates."""
    gates = [_open(client) for _ in range(WAITING)]
    before = _resident(web)
    with Waiters(base, sent, [gate.pk for gate in gates], stream=False) as waiting:
        waiting.ready()
        weight = (_resident(web) - before) * 1000 / WAITING
        used, began = _cpu(web), time.monotonic()
        time.sleep(5)
        share = (_cpu(web) - used) / (time.monotonic() - began)
        print(f"{WAITING} programs wait: {waiting.refused()} refused, {weight:.0f} kB each, {share:.0%} of a core")
        waits = []
        for gate in gates[:HEARD]:
            at = _decide(gate)
            waits.append((waiting.next() - at) / 1e6)
        print(spread("  outcome -> the one that waits for it, among them", waits))


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


def _decide(gate: Gate) -> int:
    """Approve a gate; return the time of the commit."""
    from approvals.decisions import deciding
    from approvals.decisions.submission import Submission

    deciding.decide(gate, Submission(verdict="approve", seen=bytes(gate.standing().digest), key=secrets.token_hex(8)
    ), by=_REVIEWER[0])  # fmt: skip
    return time.monotonic_ns()


_REVIEWER: list[Any] = []
_OWNER: list[Any] = []


def _token() -> str:
    """Make a token of the agent, and a reviewer."""
    from django.contrib.auth.models import Permission, User

    team = make_team()
    for name in ("view_run", "start_run", "decide_gate"):
        team.permissions.add(Permission.objects.get(codename=name))
    owner, reviewer = (User.objects.create_user(name) for name in ("owner", "reviewer"))
    for person in (owner, reviewer):
        person.groups.add(team)
    _REVIEWER.append(reviewer)
    _OWNER.append((owner, team))
    return _issue(AGENT)


def _issue(agent: str) -> str:
    """Make a token for an agent of the team."""
    from agents import tokens
    from agents.models.token import FOR_AGENTS
    from checkpoints.actors import SYSTEM

    owner, team = _OWNER[0]
    _, sent = tokens.issue(
        owner=owner, name="bench", scopes=[str(each) for each in FOR_AGENTS], lasts=timedelta(days=1), team=team,
        agent=agent, by=SYSTEM,
    )  # fmt: skip
    return sent


def _cpu(service: Any) -> float:
    """Return the processor seconds that a process has used."""
    import psutil

    process = psutil.Process(service.pid)
    every = [process, *process.children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in every)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
