"""An agent may have plain steps saved with the next milestone or effect: the rows are the same, a crash costs more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.models import Memo, Wait
from agents.moves import rewind
from agents.session import deferred_saves
from checkpoints.audit import verify_runs
from checkpoints.models import Note, Run
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.factories import ann
from tests.factories.driven_runs import (
    advance,
    advance_to_rest,
    decide,
    effects,
    failures,
    make_run,
    open_gate,
    state,
    trail,
)

AGENTS = ("steps", "milestones", "effects")
BEFORE = ["begin 1", "work 1", "sum_up 1", "prepare 1", "review 5"]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What ran, and how many checkpoints there were then."""
    return tmp_path / "ledger"


def ran(ledger: Path) -> list[str]:
    return ledger.read_text().splitlines()


def rows(run: Run) -> list[tuple[Any, ...]]:
    """What each checkpoint of the run says, but for ids and times."""
    told = run.checkpoints.order_by("seq")
    columns = ("kind", "step", "next_step", "occurrence", "attempt", "input_digest", "code_hash", "state_digest")
    return [
        tuple(bytes(each) if isinstance(each, memoryview) else each for each in row)
        for row in told.values_list(*columns)
    ]


def test_the_same_checkpoints_are_saved_and_only_the_time_is_another(tmp_path: Path) -> None:
    found, seen = {}, {}
    for name in AGENTS:
        ledger = tmp_path / "ledger"
        ledger.unlink(missing_ok=True)
        run = advance_to_rest(make_run(name, ledger=str(ledger), rounds=3))
        decide(run)
        assert advance(run).status == "completed"
        assert verify_runs.verify_run(run) == []
        assert [bytes(each.text) for each in Note.objects.filter(run=run)] == [b"began"]
        found[name], seen[name] = rows(run), ran(ledger)
    assert found["milestones"] == found["effects"] == found["steps"]
    assert seen["steps"] == [
        "begin 1", "work 2", "work 3", "work 4", "sum_up 5", "prepare 6", "review 7", "pay 8", "tidy 9", "end 10",
    ]  # fmt: skip
    assert seen["milestones"] == [
        "begin 1", "work 1", "work 1", "work 1", "sum_up 1", "prepare 6", "review 7", "pay 8", "tidy 9", "end 9",
    ]  # fmt: skip
    assert seen["effects"] == [
        "begin 1", "work 1", "work 1", "work 1", "sum_up 1", "prepare 1", "review 7", "pay 8", "tidy 9", "end 9",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "again"),
    [
        pytest.param("put_off@work", True, marks=pytest.mark.long),
        ("before_flush", True),
        pytest.param("before_save@prepare", False, marks=pytest.mark.long),
        ("after_flush", False),
        pytest.param("before_gate@review", False, marks=pytest.mark.long),
    ],
)
def test_after_a_crash_what_was_put_off_runs_again(
    place: str, again: bool, ledger: Path, workers: KillableWorkers
) -> None:
    run = make_run("effects", ledger=str(ledger))
    workers.kill(run, place)
    run.refresh_from_db()
    assert run.seq == (1 if again else 4 + (place == "before_gate@review"))
    go_on(run)
    assert (open_gate(run).step, ran(ledger).count("begin 1")) == ("review", 2 if again else 1)
    decide(run)
    workers.kill(run, "before_save@pay" if again else "put_off@tidy")
    go_on(run)
    assert [row.status for row in effects(run)] == (["unknown"] if again else ["done"])
    assert sum(line.startswith("pay") for line in ran(ledger)) == 1
    assert verify_runs.verify_run(run) == []
    kinds = [step for kind, step in trail(run) if kind == "step"]
    assert kinds[:4] == ["begin", "work", "sum_up", "prepare"]


def test_a_step_that_kills_its_workers_is_the_one_that_is_asked_about(ledger: Path, workers: KillableWorkers) -> None:
    """The steps before it run again with it, and it would be the first of them that is blamed."""
    run = make_run("effects", ledger=str(ledger))
    for _ in range(6):
        workers.tell(f"{run.pk} before_step@sum_up:kill:1")
        Run.objects.filter(pk=run.pk, status="running").update(lease_until="2000-01-01T00:00Z")
    advance_to_rest(run)
    assert (open_gate(run).step, failures(run)[-1].step) == ("sum_up", "sum_up")
    assert ran(ledger).count("begin 1") == 2


def test_a_step_that_fails_is_tried_again_alone(ledger: Path) -> None:
    run = advance(make_run("effects", ledger=str(ledger), mode="fails"))
    (failure,) = failures(run)
    assert (run.seq, failure.base, failure.step) == (2, run.head, "work")
    advance_to_rest(run)
    assert [line.split()[0] for line in ran(ledger)] == ["begin", "work", "work", "sum_up", "prepare", "review"]


def test_what_a_step_calls_once_is_kept_under_a_checkpoint_that_is_there(
    ledger: Path, workers: KillableWorkers
) -> None:
    run = make_run("effects", ledger=str(ledger), mode="once")
    workers.kill(run, "after_step@work")
    go_on(run)
    assert ran(ledger).count("called 1") == 1
    assert "called 2" not in ran(ledger)
    assert Memo.objects.filter(run=run, base__in=run.checkpoints.values("id")).count() == 1


def test_what_waits_speaks_asks_or_halts_saves_first_and_a_worker_that_lost_the_run_writes_nothing(
    ledger: Path,
) -> None:
    run = advance(make_run("effects", ledger=str(ledger), mode="sleeps"))
    assert (run.status, run.seq, Wait.objects.get(run=run).head) == ("waiting", 2, run.head)
    run = advance(make_run("effects", ledger=str(ledger), mode="speaks"))
    assert ("spoken at 2" in ran(ledger), open_gate(run).step) == (True, "review")
    run = advance(make_run("effects", ledger=str(ledger), rounds=20))
    assert (open_gate(run).step, open_gate(run).checkpoint, run.seq) == ("work", run.head, 14), "its loop guard asks"
    run = advance(make_run("effects", ledger=str(ledger), mode="halts"))
    assert (run.status, run.seq, run.reason) == ("queued", 3, "halted, to be moved")
    run = advance(make_run("effects", ledger=str(ledger), mode="lost"))
    assert (run.seq, len(trail(run))) == (1, 1)


def test_a_long_loop_is_saved_every_so_often(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred_saves, "MOST", 4)
    run = advance_to_rest(make_run("effects", ledger=str(ledger), rounds=9))
    assert [line.split()[1] for line in ran(ledger)] == ["1"] * 5 + ["6"] * 5 + ["11", "11", "13"]
    assert state(run)["done"] == list(range(9))


def test_an_edit_reuses_what_was_saved_together_step_by_step(ledger: Path) -> None:
    run = advance_to_rest(make_run("effects", ledger=str(ledger)))
    rewind.edit(run, at=1, patch=[{"op": "replace", "path": "/wish", "value": "!"}], by=ann(run.team))
    advance_to_rest(run)
    assert (open_gate(run).step, state(run)["last"]) == ("review", "1! prepared")
    assert [line.split()[0] for line in ran(ledger)][5:] == ["sum_up", "prepare", "review"]
    assert trail(run)[-4:] == [("reused", "begin"), ("reused", "work"), ("step", "sum_up"), ("step", "prepare")]
