"""Measures the latency from a decision to the next step's first line, and from a gate to the fact at an open socket.

Every process is real: a worker, a web process, a socket; the clock is the machine's monotonic one, which all of them
share. Bare Celery messages through the same worker are measured in turn with the decisions.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from benchmarks import peers
from benchmarks.numbers import percentile, spread
from benchmarks.scratch import Scratch, make_team

if TYPE_CHECKING:
    from django.contrib.auth.models import User

WARM = 30
AIM_BARE, AIM_TAIL = 2.6, 2.0


def main(rounds: int = 300) -> None:
    """Print the latencies."""
    with Scratch() as scratch:
        scratch.worker()
        scratch.sweeper()
        _, base = scratch.web()
        ann = _reviewer()
        _decisions(ann, WARM)
        scratch.analyze()
        bare, decided = _decisions(ann, rounds)
        words = peers.measure(scratch, "peers_dbos", "words", WARM + rounds)["words"]
        facts = _facts(ann, base, rounds)
    print(spread("bare Celery message: sent -> task's first line", bare[WARM:]))
    print(spread("DBOS: sent -> received in another process", words[WARM:]))
    print(spread("decision committed -> next step's first line", decided[WARM:]))
    first, tail = percentile(decided[WARM:], 50), percentile(decided[WARM:], 99)
    print(f"  over the bare message {first / percentile(bare[WARM:], 50):.2f} (aim <= {AIM_BARE})")
    print(f"  over DBOS's message {first / percentile(words[WARM:], 50):.2f} (aim <= 1)")
    print(f"  p99 over p50 {tail / first:.2f} (aim <= {AIM_TAIL:.0f})")
    print(spread("gate reached -> the fact at an open socket", facts[WARM:]))


def _reviewer() -> User:
    from django.contrib.auth.models import Permission, User

    team = make_team()
    team.permissions.set(Permission.objects.filter(codename__in=("view_run", "start_run", "decide_gate")))
    ann = User.objects.create_user("ann", password=uuid.uuid4().hex)
    ann.groups.add(team)
    return ann


def _decisions(ann: User, rounds: int) -> tuple[list[float], list[float]]:
    """Measure, in turn, bare messages and decisions up to the next step's first line, in milliseconds."""
    from agents.definition.registry import named
    from benchmarks.agents import hop

    queue = named("relay").queue
    bare, decided = [], []
    for n in range(1, WARM + rounds + 1):
        sent = time.monotonic_ns()
        hop.apply_async(args=(n,), queue=queue)
        bare.append((_told(f"hop-{n}") - sent) / 1e6)
        gate = _gate(ann)
        with _commits() as committed:
            _approve(gate, ann)
        decided.append((_told(f"first-line-{gate.run_id}") - committed[-1]) / 1e6)
    return bare, decided


def _told(name: str) -> int:
    """Wait, without polling, for the time that a worker passes on under this name."""
    from benchmarks.agents import client

    return int(client().blpop([name], timeout=10)[1])  # type: ignore[index]


@contextmanager
def _commits() -> Iterator[list[int]]:
    """Record the times of this thread's commits: right after each, before anything that waits for it."""
    from django.db import connection

    moments: list[int] = []
    hooks = connection.run_and_clear_commit_hooks

    def marked() -> None:
        moments.append(time.monotonic_ns())
        hooks()

    with mock.patch.object(connection, "run_and_clear_commit_hooks", marked):
        yield moments


def _facts(ann: User, base: str, rounds: int) -> list[float]:
    """Measure the time from the gate step's last line to its fact at a socket, in milliseconds."""
    from django.conf import settings
    from websockets.sync.client import connect
    from websockets.typing import Origin

    from tests.conftest import session_of

    cookie = f"{settings.SESSION_COOKIE_NAME}={session_of(ann)}"
    waits = []
    url = base.replace("http", "ws", 1) + "/ws/"
    with connect(url, origin=Origin(base), additional_headers={"Cookie": cookie}) as socket:
        for _ in range(WARM + rounds):
            run_id = _start(ann)
            while True:
                fact = json.loads(socket.recv(timeout=10))
                arrived = time.monotonic_ns()
                if fact["kind"] == "gate.opened":
                    break
            gate = _open_gate(run_id)
            waits.append((arrived - int(json.loads(bytes(gate.card))["summary"])) / 1e6)
            _approve(gate, ann)
            _ended(run_id)
    return waits


def _start(ann: User) -> int:
    from agents.runs.start import start_run
    from checkpoints.actors import SYSTEM

    return start_run("relay", {}, by=SYSTEM, team=ann.groups.get()).pk


def _gate(ann: User) -> Any:
    return _open_gate(_start(ann))


def _open_gate(run_id: int) -> Any:
    from approvals.models import Gate

    return _until(lambda: Gate.objects.filter(run_id=run_id, status="open").first())


def _approve(gate: Any, ann: User) -> None:
    from approvals.decisions import deciding
    from approvals.decisions.submission import Submission

    proposal = gate.proposals.get(number=gate.proposal)
    deciding.decide(gate, Submission(verdict="approve", seen=bytes(proposal.digest), key=uuid.uuid4().hex), by=ann)


def _ended(run_id: int) -> dict[str, Any]:
    from checkpoints import store
    from checkpoints.models import Run

    run = _until(lambda: Run.objects.filter(pk=run_id, status="completed").first())
    return store.load(run).state


def _until(found: Any, within: float = 20.0) -> Any:
    end = time.monotonic() + within
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.002)
    raise TimeoutError("the run did not get there in time; is the worker alive?")


if __name__ == "__main__":
    main()
