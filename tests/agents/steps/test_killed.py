"""kill -9 around a repair: whoever dies before it is saved has refused nothing, and nothing goes round for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.models import Effect
from checkpoints.audit import verify_runs
from checkpoints.models import Run
from tests.factories.driven_runs import answer, failures, make_run, open_gate, state, trail
from tests.harness.examples import one_in

from .killable_workers import KillableWorkers, go_on


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What really ran, a line an execution."""
    return tmp_path / "ledger"


POINTS = [
    ("after_step@build", 1), ("before_repair@build", 1), ("before_save@build", 1), ("after_save@build", 1),
    ("after_repair@build", 1), ("before_repair@build", 2), ("after_repair@build", 2), ("before_step@shape", 2),
    ("before_save@shape", 2), ("before_repair@build", 3), ("before_save@build", 2),
]  # fmt: skip


@pytest.mark.parametrize(("place", "hit"), one_in(3, POINTS))
def test_a_worker_killed_in_a_repair_has_refused_nothing_twice(
    place: str, hit: int, ledger: Path, workers: KillableWorkers
) -> None:
    run = make_run("builder", ledger=str(ledger), fault="first", floor=3)
    workers.kill(run, place, hit)
    go_on(run)
    assert (run.status, state(run)["product"]) == ("completed", 3)
    assert [(each.validator, each.ring) for each in failures(run)] == [("fits", 0), ("fits", 1), ("fits", 2)]
    assert [kind for kind, _ in trail(run)].count("repair") == 3
    assert [row.status for row in Effect.objects.filter(run=run)] == ["done"]
    assert ledger.read_text().count("order") == 1
    assert verify_runs.verify_run(run) == []


@pytest.mark.parametrize(
    ("place", "hit"), [("before_repair@write", 2), ("before_gate@write", 1), ("after_gate@write", 1)]
)
def test_a_worker_killed_when_it_asks_a_person_asks_once(
    place: str, hit: int, ledger: Path, workers: KillableWorkers
) -> None:
    run = make_run("drafter", ledger=str(ledger), floor=2)
    workers.kill(run, place, hit)
    go_on(run)
    assert (run.status, run.gates.count(), len(failures(run))) == ("waiting", 1, 2)
    answer(run, "accept")
    assert go_on(run).status == "completed"
    assert state(run)["draft"] == 1


def test_a_worker_that_dies_in_every_repair_ends_at_a_person(ledger: Path, workers: KillableWorkers) -> None:
    run = make_run("drafter", ledger=str(ledger))
    for _ in range(2):
        workers.kill(run, "before_repair@write")
        Run.objects.filter(pk=run.pk).update(lease_until="2000-01-01T00:00:00Z")
    go_on(run)
    assert (run.status, open_gate(run).step) == ("waiting", "write")
    assert "2 workers died in this step" in failures(run)[0].error
