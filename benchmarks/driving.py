"""Makes the people of a benchmark, and drives runs that a worker performs: start, wait for the gate, decide."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterable
from functools import cache
from typing import Any

from django.contrib.auth.models import Group, User

from agents.definition import registry
from agents.runs.start import start_run
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.gates import reading
from approvals.models import Gate, Policy, versions
from benchmarks.scratch import Scratch
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.factories import people
from tests.harness.session import ROOT
from tests.harness.waiting import until

MAIL = ROOT / "agents" / "examples" / "refunds" / "mails" / "01-frames-sent-back.eml"


def make_team() -> Group:
    """Make a team whose members review and whose agents may ask as often as they like."""
    team = people.make_team("Bench")
    versions.write(Policy(team=team, name="default", hourly=None, pause=None), by=SYSTEM)
    return team


def make_ann() -> User:
    return people.ann(make_team())


@cache
def team_of(person: User) -> Group:
    return person.groups.get()


def start_agent(agent: str, ann: User, **values: Any) -> int:
    """Start a run in Ann's team; return its id."""
    return start_run(agent, values, by=SYSTEM, team=team_of(ann)).pk


def wait_for_gates(runs: list[int]) -> dict[int, int]:
    """Wait until each run has an open gate; return the gates by run."""

    def open_gates() -> dict[int, int]:
        gates = dict(Gate.objects.filter(run_id__in=runs, status="open").values_list("run_id", "pk"))
        return gates if len(gates) == len(runs) else {}

    return until(open_gates, within=300)


def approve_gate(gate: int, ann: User) -> None:
    """Approve what the gate asks now, read as its page reads it."""
    read = reading.read(gate)
    submission = Submission(verdict="approve", seen=bytes(read.proposal.digest), key=uuid.uuid4().hex)
    deciding.decide(read.gate, submission, by=ann)


def completed_runs(ids: Iterable[int]) -> set[int]:
    return set(Run.objects.filter(pk__in=ids, status="completed").values_list("pk", flat=True))


def relay_runs(ann: User, count: int) -> None:
    """Start relays, approve each at its gate, and wait for their ends."""
    runs = [start_agent("relay", ann) for _ in range(count)]
    for gate in wait_for_gates(runs).values():
        approve_gate(gate, ann)
    until(lambda: len(completed_runs(runs)) == count)


def bring_refunds_to_gates(scratch: Scratch, ann: User, count: int) -> list[tuple[int, int]]:
    """Have a real worker bring runs of the refunds agent to their gates; return (run, gate) for each."""
    port = os.environ["SANDBOX_URL"].rpartition(":")[2]
    sandbox = [sys.executable, "-m", "agents.examples.sandbox", "--data", str(scratch.disk / "sandbox")]
    scratch.start_service("sandbox", [*sandbox, "--port", port])  # which takes the payments
    scratch.start_worker()
    mail = registry.agent_named("refunds").agent.inputs_from(MAIL)[0]["mail"]
    # No two are alike: the agent asks about a mail that it has seen before.
    mails = [{**mail, "raw": f"{mail['raw']}\nThe {number}.\n"} for number in range(count)]
    return list(wait_for_gates([start_agent("refunds", ann, mail=text) for text in mails]).items())
