"""Measures a thousand open pages on one web process: delays, memory of a socket, recovery when the process dies.

The pages are in a separate process, whose share of the machine is printed: on two cores it is considerable. Clocks
are the machine's monotonic one.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
from websockets.sync.client import connect

from benchmarks.marks import mark
from benchmarks.pages import socket_load
from benchmarks.pages.socket_load import answer
from benchmarks.pages.waiting_refunds import AGENTS, wait_at_gates
from benchmarks.parts import crowd
from benchmarks.parts.numbers import percentile, spread
from benchmarks.parts.people import make_person, make_team, session_of
from benchmarks.parts.processes import resident
from benchmarks.parts.scratch import Scratch
from tests.harness.services import free_port

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from django.contrib.auth.models import User

    from checkpoints.models import Run
    from tests.harness.services import Service

PEOPLE = 50
VIEWERS = 50
EVENTS = 60
STORED = 1_000_000  # events
WARM = 1  # rounds of warm-up, for connections and threads
PAUSE = 0.2  # seconds between events
AIM_FACT, AIM_FRAGMENT, AIM_BACK, AIM_KB = 1000.0, 500.0, 15.0, 120.0


def main(sockets: int = 1000) -> None:
    """Print the cost of a thousand open pages."""
    with Scratch(AGENTS) as scratch:
        scratch.sandbox()
        scratch.worker()
        ann = make_person("ann", make_team())
        crowd.events(scratch, STORED)
        run_id, gate_id = wait_at_gates(ann, 1)[0]
        cookies = _cookies(ann, sockets)
        bare = _bare(scratch, sockets)
        print(spread("a bare consumer: sent -> received by all", bare), flush=True)
        web, base = scratch.web()
        _warm(base, cookies[:PEOPLE], gate_id)
        before = resident(web.pid)
        with _load(base, "/ws/", f"gate:{gate_id}", cookies) as pipe:
            refused = answer(pipe, "open")
            weight = (resident(web.pid) - before) * 1000 / sockets
            mark(
                "memory of a socket",
                weight,
                "kB",
                most=AIM_KB,
                beside={"open": f"{sockets:,}", "refused": f"{refused}"},
            )
            run = _run(run_id)
            facts, share = _facts(pipe, run, gate_id, EVENTS)
            _delays(
                "committed -> fact at every socket",
                facts,
                AIM_FACT,
                {"bare consumer": f"{percentile(bare, 99):.0f} ms"},
            )
            print(f"the load generator took {share:.0%} of one core meanwhile", flush=True)
            fragments = _fragments(pipe, run, gate_id)
            _delays(
                f"committed -> fragment for {VIEWERS} viewers",
                fragments,
                AIM_FRAGMENT,
                {"facts": f"{percentile(facts, 99):.0f} ms"},
            )
            _death(scratch, web, base, pipe, run, gate_id)


def _delays(name: str, waits: Sequence[float], aim: float, beside: dict[str, str]) -> None:
    print(spread(name, waits))
    beside = {"p50": f"{percentile(waits, 50):.0f} ms", **beside}
    mark(f"{name}, p99", percentile(waits, 99), "ms", most=aim, beside=beside)


def _facts(pipe: Connection, run: Run, gate_id: int, events: int) -> tuple[list[float], float]:
    """Measure the milliseconds until each page had each fact, and the generator's share of a core."""
    cpu, began, waits = answer(pipe, "cpu"), time.monotonic(), []
    for number in range(1, events + 1):
        sent = _say(run, gate_id, number)
        waits += [(at - sent) / 1e6 for at in answer(pipe, "heard", number, 20.0)]
        time.sleep(PAUSE)
    return waits, (answer(pipe, "cpu") - cpu) / (time.monotonic() - began)


def _fragments(pipe: Connection, run: Run, gate_id: int) -> list[float]:
    rounds = []
    for number in range(1001, 1012):
        sent = _say(run, gate_id, number)
        address = f"/gates/{gate_id}/status/?seen=1"
        rounds.append([(at - sent) / 1e6 for at in answer(pipe, "fetch", address, number, VIEWERS, 30.0)])
    return [wait for each in rounds[WARM:] for wait in each]


def _death(scratch: Scratch, web: Service, base: str, pipe: Connection, run: Run, gate_id: int) -> None:
    """Kill the web process, commit events, start it again on its port, and print how soon all pages caught up."""
    refused = answer(pipe, "refusals")
    web.kill()
    first, last = 2001, 2040
    for number in range(first, last + 1):
        _say(run, gate_id, number)
    scratch.web(port=int(base.rpartition(":")[2]))
    back = time.monotonic_ns()
    heard = answer(pipe, "heard", last, 60.0)
    seconds = max((at - back) / 1e9 for at in heard)
    lost, turned = answer(pipe, "lost", first, last), answer(pipe, "refusals") - refused
    mark("after the process was killed: all back and caught up", seconds, "s", most=AIM_BACK)
    mark("handshakes refused and facts lost meanwhile", lost + turned, most=0)


def _bare(scratch: Scratch, sockets: int) -> list[float]:
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "uvicorn", "benchmarks.pages.bare_socket:application", "--port", str(port)]
    service = scratch.service("bare", [*command, "--log-level", "warning"])
    with _load(base, "/ws/", "", ["a=b"] * sockets) as pipe:
        answer(pipe, "open")
        waits = []
        with connect(base.replace("http", "ws", 1) + "/ws/") as speaker:
            for number in range(1, EVENTS + 1):
                sent = time.monotonic_ns()
                speaker.send(json.dumps({"n": number}))
                speaker.recv()  # otherwise its own messages would fill its queue, and pings would not be answered
                waits += [(at - sent) / 1e6 for at in answer(pipe, "heard", number, 20.0)]
                time.sleep(PAUSE)
    service.stop()
    return waits


@contextmanager
def _load(base: str, path: str, subject: str, cookies: Sequence[str]) -> Iterator[Connection]:
    from checkpoints.events import commit_order

    at = str(commit_order.newest()) if subject else ""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=socket_load.main, args=(theirs, base, path, subject, at, list(cookies)))
    process.start()
    try:
        yield ours
        ours.send(("stop",))
        process.join(20)
    finally:
        process.kill()


def _say(run: Run, gate_id: int, number: int) -> int:
    """Commit an event of the gate with this number; return the time of the commit, in ns."""
    from checkpoints.actors import SYSTEM
    from checkpoints.events import event_log

    data = {"reviewers": [run.team_id]}
    event_log.record("gate.remarked", subject=f"gate:{gate_id}", by=SYSTEM, run=run, version=number, data=data)
    return time.monotonic_ns()


def _run(run_id: int) -> Run:
    from checkpoints.models import Run

    return Run.objects.get(pk=run_id)


def _cookies(like: User, sockets: int) -> list[str]:
    """Make sessions for as many people as one team has, distributed over the sockets."""
    from django.conf import settings

    people = [make_person(f"viewer-{n}", like.groups.get()) for n in range(PEOPLE)]
    sessions = [f"{settings.SESSION_COOKIE_NAME}={session_of(person)}" for person in people]
    return [sessions[n % PEOPLE] for n in range(sockets)]


def _warm(base: str, cookies: Sequence[str], gate_id: int) -> None:
    with httpx.Client(base_url=base) as client:
        for cookie in cookies:
            client.get(f"/gates/{gate_id}/status/", headers={"Cookie": cookie}).raise_for_status()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
