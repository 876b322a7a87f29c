"""kill -9 at every named crash point, then another worker: no effect happens twice, and the run comes to its end.

The oracle is the external ledger that the effects write, the run's own rows, and the audit's verification.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db.models.functions import Now

from checkpoints.audit import verify_runs
from checkpoints.models import Run
from tests.factories.driven_runs import advance, answer, decide, effects, make_run, open_gate, state
from tests.harness.examples import one_in
from tests.harness.services import Talking

TO_THE_GATE = [
    "after_claim", "before_step", "after_step", "before_save", "after_save",
    "after_commit", "before_gate", "after_gate",
]  # fmt: skip
FROM_THE_GATE = [
    "after_claim", "before_outcome", "after_outcome", "before_step:2", "before_step:3", "after_step", "after_intent",
    "after_intent:2", "after_effect", "after_effect:2", "before_save", "before_save:2", "before_save:3",
    "before_save:4", "after_save", "after_save:2", "after_save:3", "after_save:4", "after_commit", "after_commit:2",
]  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The external ledger of a test's effects."""
    return tmp_path / "ledger"


@pytest.fixture(scope="module")
def hand() -> Iterator[Talking]:
    """A process that forks a worker for each run it is told."""
    env = {"HOLDPOINT_AGENTS": "tests.factories.sample_agents", "HOLDPOINT_LOG_LEVEL": "ERROR"}
    command = [sys.executable, "-m", "tests.harness.forked_worker"]
    process = Talking(*command, env=env)
    yield process
    process.close()


@pytest.mark.parametrize("place", one_in(3, TO_THE_GATE))
def test_a_worker_killed_on_the_way_to_a_gate_leaves_one_gate(place: str, ledger: Path, hand: Talking) -> None:
    run = make_run("payer", ledger=str(ledger))
    kill_at(place, run, hand)
    go_on(run)
    assert (run.status, run.gates.count(), ledger.exists()) == ("waiting", 1, False)
    decide(run)
    go_on(run)
    assert_paid_once(run, ledger)


@pytest.mark.parametrize("place", one_in(3, FROM_THE_GATE))
def test_a_worker_killed_after_the_decision_does_nothing_twice(place: str, ledger: Path, hand: Talking) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    decide(run)
    kill_at(place, run, hand)
    go_on(run)
    if run.status == "waiting":
        gate = open_gate(run)
        assert (gate.kind, gate.step) == ("recovery", "mail")
        assert [row.status for row in effects(run, "mail")] == ["unknown"]
        if "mail" in ledger.read_text():
            answer(run, "happened", {"mailed": True})
        else:
            answer(run, "not_happened")
        go_on(run)
    assert_paid_once(run, ledger)


def kill_at(place: str, run: Run, hand: Talking) -> None:
    """Let another process take the run on and kill itself with SIGKILL at this point."""
    point, _, hit = place.partition(":")
    assert hand.tell(f"{run.pk} {point}:kill:{hit or 1}").strip() == str(-signal.SIGKILL), f"{place} was never reached"


def go_on(run: Run) -> None:
    """Let the dead worker's lease run out, and take the run on."""
    Run.objects.filter(pk=run.pk, status="running").update(lease_until=Now())
    advance(run)


def assert_paid_once(run: Run, ledger: Path) -> None:
    assert run.status == "completed"
    requests = [line.split() for line in ledger.read_text().splitlines()]
    assert len({key for what, key, _ in requests if what == "pay"}) == 1  # the provider does a key once
    assert len([what for what, _, _ in requests if what == "mail"]) == 1
    assert {amount for _, _, amount in requests} == {"10.00"}
    assert (state(run)["mailed"], state(run)["payment"]) == (True, requests[0][1])
    assert [row.status for row in effects(run, "pay")] == ["done"]
    assert [row.status for row in effects(run, "mail")][-1] == "done"
    assert verify_runs.verify_run(run) == []
