"""Drives runs of the agents in benchmarks.parts.agents, which a worker performs: start, wait for the gate, approve."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from django.contrib.auth.models import Group, User

    from approvals.models import Gate

T = TypeVar("T")


def start(ann: User, agent: str = "relay", **input: Any) -> int:
    """Start a run in Ann's team; return its id."""
    from agents.runs.start import start_run
    from checkpoints.actors import SYSTEM

    return start_run(agent, input, by=SYSTEM, team=_team_of(ann)).pk


@cache
def _team_of(ann: User) -> Group:
    return ann.groups.get()


def open_gate(run_id: int) -> Gate:
    """Wait for a run's open gate."""
    from approvals.models import Gate

    return until(lambda: Gate.objects.filter(run_id=run_id, status="open").first())


def approve(gate: Gate, ann: User) -> None:
    """Approve what the gate asks now."""
    decide(gate.pk, ann)


def decide(gate: int, ann: User) -> None:
    """Do the same by the gate's id, which is read as its page reads it."""
    from approvals.decisions import deciding
    from approvals.decisions.submission import Submission
    from approvals.gates import reading

    read = reading.read(gate)
    submission = Submission(verdict="approve", seen=bytes(read.proposal.digest), key=uuid.uuid4().hex)
    deciding.decide(read.gate, submission, by=ann)


def completed(ids: Iterable[int]) -> set[int]:
    """Return those of the runs that are completed."""
    from checkpoints.models import Run

    return set(Run.objects.filter(pk__in=ids, status="completed").values_list("pk", flat=True))


def through(ann: User, count: int, *, every: float) -> None:
    """Start `count` runs, approve each at its gate, and wait for their ends, looking every so many seconds."""
    from approvals.models import Gate

    ids = [start(ann) for _ in range(count)]

    def asked() -> list[Gate]:
        found = list(Gate.objects.filter(run_id__in=ids, status="open"))
        return found if len(found) == count else []

    for gate in until(asked, every=every):
        approve(gate, ann)
    until(lambda: len(completed(ids)) == count, every=every)


def until(found: Callable[[], T | None], *, within: float = 120.0, every: float = 0.002) -> T:
    """Return what is found at last. Raises TimeoutError after `within` seconds."""
    end = time.monotonic() + within
    while not (value := found()):
        if time.monotonic() > end:
            raise TimeoutError("the runs did not get there in time; is the worker alive?")
        time.sleep(every)
    return value
