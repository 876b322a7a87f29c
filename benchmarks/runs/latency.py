"""Measures the latency from a decision to the next step's first line, and from a gate to the fact at an open socket.

Every process is real: a worker, a web process, a socket; the clock is the machine's monotonic one, which all of them
share. Bare Celery messages through the same worker are measured in turn with the decisions.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING
from unittest import mock

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile, spread
from benchmarks.parts.people import make_person, make_team, session_of
from benchmarks.parts.relays import approve, completed, open_gate, start, until
from benchmarks.parts.scratch import Scratch
from benchmarks.peers import environment as peers

if TYPE_CHECKING:
    from django.contrib.auth.models import User

WARM = 30
AIM_BARE, AIM_TAIL, AIM_FACT = 2.6, 2.0, 50.0


def main(rounds: int = 300) -> None:
    """Print the latencies."""
    with Scratch() as scratch:
        scratch.worker()
        scratch.sweeper()
        _, base = scratch.web()
        ann = make_person("ann", make_team())
        _decisions(ann, WARM)
        scratch.analyze()
        bare, decided = _decisions(ann, rounds)
        words = peers.measure(scratch, "dbos_workflows", "words", WARM + rounds)["words"]
        _report(bare[WARM:], words[WARM:], decided[WARM:])
        seen = facts(ann, base, WARM + rounds // 3, agent="relay", reached=_reached)[WARM:]
    print(spread("gate reached -> the fact at an open socket", seen))
    mark("gate reached -> the fact at an open socket, p50", percentile(seen, 50), "ms", most=AIM_FACT)


def _report(bare: list[float], words: list[float], decided: list[float]) -> None:
    print(spread("bare Celery message: sent -> task's first line", bare))
    print(spread("DBOS: sent -> received in another process", words))
    print(spread("decision committed -> next step's first line", decided))
    first, hop, word, tail = (percentile(*each) for each in ((decided, 50), (bare, 50), (words, 50), (decided, 99)))
    ours, name = f"{first:.2f} ms", "decision committed -> next step's first line"
    mark(f"{name}, p50 over DBOS's message", first / word, most=1.0, beside={"ours": ours, "DBOS": f"{word:.2f} ms"})
    mark(f"{name}, p50 over a bare message", first / hop, most=AIM_BARE, beside={"ours": ours, "bare": f"{hop:.2f} ms"})
    mark(f"{name}, p99 over p50", tail / first, most=AIM_TAIL, beside={"p50": ours, "p99": f"{tail:.2f} ms"})


def _decisions(ann: User, rounds: int) -> tuple[list[float], list[float]]:
    """Measure, in turn, bare messages and decisions up to the next step's first line, in milliseconds."""
    from agents.definition.registry import named
    from benchmarks.parts.agents import hop

    queue = named("relay").queue
    bare, decided = [], []
    for n in range(1, WARM + rounds + 1):
        sent = time.monotonic_ns()
        hop.apply_async(args=(n,), queue=queue)
        bare.append((told_at(f"hop-{n}") - sent) / 1e6)
        gate = open_gate(start(ann))
        with commits() as committed:
            approve(gate, ann)
        decided.append((told_at(f"first-line-{gate.run_id}") - committed[-1]) / 1e6)
    return bare, decided


def told_at(name: str) -> int:
    """Wait, without polling, for the time that a worker passes on under this name."""
    from benchmarks.parts.agents import client

    return int(client().blpop([name], timeout=10)[1])  # type: ignore[index]


@contextmanager
def commits() -> Iterator[list[int]]:
    """Record the times of this thread's commits: right after each, before anything that waits for it."""
    from django.db import connection

    moments: list[int] = []
    hooks = connection.run_and_clear_commit_hooks

    def marked() -> None:
        moments.append(time.monotonic_ns())
        hooks()

    with mock.patch.object(connection, "run_and_clear_commit_hooks", marked):
        yield moments


def facts(ann: User, base: str, rounds: int, *, agent: str, reached: Callable[[int], int]) -> list[float]:
    """Measure the time from when a run `reached` its gate to the gate's fact at a socket, in milliseconds."""
    from django.conf import settings
    from websockets.sync.client import connect
    from websockets.typing import Origin

    cookie = f"{settings.SESSION_COOKIE_NAME}={session_of(ann)}"
    waits = []
    url = base.replace("http", "ws", 1) + "/ws/"
    with connect(url, origin=Origin(base), additional_headers={"Cookie": cookie}) as socket:
        for _ in range(rounds):
            run_id = start(ann, agent)
            while True:
                fact = json.loads(socket.recv(timeout=10))
                arrived = time.monotonic_ns()
                if fact["kind"] == "gate.opened":
                    break
            waits.append((arrived - reached(run_id)) / 1e6)
            approve(open_gate(run_id), ann)
            until(partial(completed, [run_id]))
    return waits


def _reached(run_id: int) -> int:
    """Return when a relay reached its gate: its card says so."""
    return int(json.loads(bytes(open_gate(run_id).card))["summary"])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
