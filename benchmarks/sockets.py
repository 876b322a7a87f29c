"""Measures a thousand open pages on one web process: delays, memory of a socket, recovery when the process dies.

The pages are in a separate process, whose share of the machine is printed: on two cores it is considerable. Clocks
are the machine's monotonic one.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
from websockets.sync.client import connect

from benchmarks import crowd, pages, socket_load
from benchmarks.memory import _resident
from benchmarks.numbers import percentile
from benchmarks.scratch import Scratch
from benchmarks.socket_load import answer
from tests.harness.services import free_port

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from django.contrib.auth.models import User

    from checkpoints.models import Run
    from tests.harness.services import Service

PEOPLE = 50
VIEWERS = 50
EVENTS = 60
WARM = 1  # rounds of warm-up, for connections and threads
PAUSE = 0.2  # seconds between events
AIM_FACT, AIM_FRAGMENT, AIM_BACK, AIM_KB = 1000.0, 500.0, 15.0, 120.0


def main(sockets: int = 1000) -> None:
    """Print the cost of a thousand open pages."""
    with Scratch("benchmarks.agents,agents.examples.refunds") as scratch:
        scratch.sandbox()
        scratch.worker()
        people, _ = pages._people()
        crowd.events(scratch.environment["DATABASE_OWNER_URL"], pages.EVENTS)
        run_id, gate_id = pages._real(people["ann"])[0]
        cookies = _cookies(people["ann"], sockets)
        bare = _bare(scratch, sockets)
        print(_line("a bare consumer: sent -> received by all", bare, None))
        web, base = scratch.web()
        _warm(base, cookies[:PEOPLE], gate_id)
        before = _resident(web)
        with _load(base, "/ws/", f"gate:{gate_id}", cookies) as pipe:
            refused = answer(pipe, "open")
            weight = (_resident(web) - before) * 1000 / sockets
            print(f"{sockets} sockets open, {refused} refused; {weight:.0f} kB each (aim <= {AIM_KB:.0f})")
            run = _run(run_id)
            facts, share = _facts(pipe, run, gate_id, EVENTS)
            print(_line("committed -> fact at every one of them", facts, AIM_FACT))
            print(f"  the load generator took {share:.0%} of one core meanwhile")
            fragments = _fragments(pipe, run, gate_id)
            print(_line(f"committed -> fragment read by {VIEWERS} viewers", fragments, AIM_FRAGMENT))
            _death(scratch, web, base, pipe, run, gate_id)


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
    verdict = "holds" if seconds <= AIM_BACK and not lost and not turned else "MISSED"
    print(f"after the process was killed: all back and caught up in {seconds:.1f} s (aim <= {AIM_BACK:.0f} s),")
    print(f"  {turned} refused, {lost} facts lost: {verdict}")


def _bare(scratch: Scratch, sockets: int) -> list[float]:
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "uvicorn", "benchmarks.bare_socket:application", "--port", str(port)]
    service = scratch._service("bare", [*command, "--log-level", "warning"])
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
    from django.contrib.auth.models import User

    from tests.conftest import session_of

    team, sessions = like.groups.get(), []
    for n in range(PEOPLE):
        user = User.objects.create_user(f"viewer-{n}", password=uuid.uuid4().hex)
        user.groups.add(team)
        sessions.append(f"{settings.SESSION_COOKIE_NAME}={session_of(user)}")
    return [sessions[n % PEOPLE] for n in range(sockets)]


def _warm(base: str, cookies: Sequence[str], gate_id: int) -> None:
    with httpx.Client(base_url=base) as client:
        for cookie in cookies:
            client.get(f"/gates/{gate_id}/status/", headers={"Cookie": cookie}).raise_for_status()


def _line(name: str, waits: Sequence[float], aim: float | None) -> str:
    p50, p99 = percentile(waits, 50), percentile(waits, 99)
    verdict = "" if aim is None else f"   (aim p99 <= {aim:.0f}): {'holds' if p99 <= aim else 'MISSED'}"
    return f"{name:<48} p50 {p50:7.1f} ms   p99 {p99:7.1f} ms   n={len(waits)}{verdict}"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
