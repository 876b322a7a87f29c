"""Measures many open pages on one web process: delays, memory of a socket, recovery when the process dies.

The pages are in a process of their own, which takes its share of the machine: on two cores it is considerable.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import httpx
from django.conf import settings

from benchmarks.clients import Clients, OpenPages
from benchmarks.crowd import fill_events
from benchmarks.driving import bring_refunds_to_gates, make_ann, team_of
from benchmarks.figures import Figure
from benchmarks.measuring import compute_percentile, resident_megabytes
from benchmarks.scratch import Scratch
from checkpoints.actors import SYSTEM
from checkpoints.events import commit_order, event_log
from checkpoints.models import Run
from tests.factories.people import make_user
from tests.harness.signed_in_clients import session_of

PEOPLE, VIEWERS, EVENTS, ROUNDS = 50, 50, 60, 11
STORED = 1_000  # events for each socket
PAUSE = 0.2  # seconds between events


def measure_sockets(scratch: Scratch, sockets: int) -> Iterator[Figure]:
    """Measure so many open pages."""
    ann = make_ann()
    fill_events(scratch, STORED * sockets)
    run_id, gate = bring_refunds_to_gates(scratch, ann, 1)[0]
    run, status = Run.objects.get(pk=run_id), f"/gates/{gate}/status/"
    people = [make_user("Viewer", team_of(ann)) for _ in range(PEOPLE)]
    sessions = [f"{settings.SESSION_COOKIE_NAME}={session_of(person)}" for person in people]
    web, base = scratch.start_web()
    with httpx.Client(base_url=base) as client:  # the process warms up
        for session in sessions:
            client.get(status, headers={"Cookie": session}).raise_for_status()
    before = resident_megabytes(web.pid)
    cookies = [sessions[number % PEOPLE] for number in range(sockets)]
    with Clients(OpenPages, base, f"gate:{gate}", str(commit_order.newest_cursor()), cookies) as pages:
        refused = pages.ask("open")
        weight = (resident_megabytes(web.pid) - before) * 1000 / sockets
        parts = {"open": f"{sockets:,}", "refused": f"{refused}"}
        yield Figure("memory of a socket", weight, "kB", most=120, parts=parts)
        facts = []
        for number in range(1, EVENTS + 1):
            sent = _record_event(run, gate, number)
            facts += [(at - sent) / 1e6 for at in pages.ask("hear", number, 20.0)]
            time.sleep(PAUSE)
        yield _delay_of("committed -> fact at every socket", facts, 1_000)
        fragments = []
        for number in range(1001, 1001 + ROUNDS):
            sent = _record_event(run, gate, number)
            read = pages.ask("fetch", f"{status}?seen=1", number, VIEWERS)
            fragments += [(at - sent) / 1e6 for at in read if number > 1001]  # the first opens connections
        yield _delay_of(f"committed -> fragment for {VIEWERS} viewers", fragments, 500)
        web.kill()
        for number in range(2001, 2041):
            _record_event(run, gate, number)
        scratch.start_web(port=int(base.rpartition(":")[2]))
        back = time.monotonic_ns()
        seconds = max((at - back) / 1e9 for at in pages.ask("hear", 2040, 60.0))
        missed = pages.ask("missed", 2001, 2040) - refused
    yield Figure("after the process was killed: all back and caught up", seconds, "s", most=15)
    yield Figure("handshakes refused and facts lost meanwhile", missed, most=0)


def _record_event(run: Run, gate: int, number: int) -> int:
    """Commit an event of the gate with this number; return the time of the commit, in ns."""
    data = {"reviewers": [run.team_id]}
    event_log.record("gate.remarked", subject=f"gate:{gate}", by=SYSTEM, run=run, version=number, data=data)
    return time.monotonic_ns()


def _delay_of(name: str, waits: Sequence[float], most: float) -> Figure:
    parts = {"p50": f"{compute_percentile(waits, 50):.0f} ms"}
    return Figure(f"{name}, p99", compute_percentile(waits, 99), "ms", most=most, parts=parts)
