"""Only so many children of a run are at work at once; a crash between two turns holds none back for good."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from agents.children import turns
from agents.definition import registry
from agents.models import ChildLink
from agents.moves import rewind
from agents.moves.cancel import cancel
from agents.runner import engine, version_upgrade
from agents.serving.sweeper import Sweeper
from checkpoints import actors
from checkpoints.models import Event, Run
from tests.agents.steps.killable_workers import KillableWorkers
from tests.factories import ann
from tests.factories.driven_runs import advance, decide, state
from tests.harness.racing_threads import meet_lock, race

from .families import child, children, make_parent, statuses, to_rest, worked

BOUND = 3  # of the parent's class


def held(parent: Run) -> int:
    """How many of its children wait for their turn."""
    return ChildLink.objects.filter(parent=parent, held=True).count()


def test_so_many_are_started_and_the_others_are_held() -> None:
    run = advance(make_parent(*"abcde"))
    assert statuses(run) == ["queued"] * BOUND + ["waiting"] * 2
    assert (held(run), run.awaited) == (2, 5)
    last = child(run, "e")
    assert last.reason == "Waits until fewer runs of its parent are at work"
    told = Event.objects.filter(subject=f"run:{last.pk}").order_by("id").values_list("kind", "version")
    assert list(told) == [("run.started", 0), ("run.waiting", 1)]
    assert advance(last).status == "waiting"  # no worker can claim it


def test_one_that_ends_lets_the_next_go() -> None:
    run = advance(make_parent(*"abcde"))
    advance(child(run, "b"))
    assert statuses(run) == ["queued", "completed", "queued", "queued", "waiting"]
    run = to_rest(run)
    assert state(run)["found"] == [f"found {name}" for name in "abcde"]
    assert held(run) == 0


@pytest.mark.parametrize("mode", ["ask", "sleep"])
def test_one_that_waits_for_a_person_or_a_time_is_not_at_work(mode: str) -> None:
    run = advance(make_parent(*"abcd", modes={"a": mode}))
    assert advance(child(run, "a")).status == "waiting"
    assert child(run, "d").status == "queued"


def test_one_that_goes_on_after_a_decision_is_not_held() -> None:
    run = advance(make_parent(*"abcd", modes={"a": "ask"}))
    first = advance(child(run, "a"))
    decide(first)
    assert to_rest(run).status == "completed"


def test_one_that_is_cancelled_lets_the_next_go_and_a_held_one_may_be_cancelled() -> None:
    run = advance(make_parent(*"abcde", need=2))
    cancel(child(run, "d"), by=actors.SYSTEM, reason="not wanted")
    cancel(child(run, "a"), by=actors.SYSTEM, reason="not wanted")
    assert statuses(run) == ["cancelled", "queued", "queued", "cancelled", "queued"]
    Sweeper().children()
    assert held(run) == 0


def test_a_person_may_move_a_held_one_and_it_is_not_woken_at_its_gate() -> None:
    run = advance(make_parent(*"abcd", modes={"d": "ask"}))
    last = child(run, "d")
    rewind.rewind(last, to=1, by=ann(run.team))
    assert advance(last).status == "waiting"
    version = last.version
    advance(child(run, "a"))
    last.refresh_from_db()
    assert (last.version, held(run)) == (version, 0)


def test_the_sweeper_lets_go_what_a_crash_held_back(workers: KillableWorkers) -> None:
    run = advance(make_parent(*"abcd"))
    workers.kill(child(run, "a"), "after_commit@give_up")
    assert child(run, "d").status == "waiting"
    Sweeper().children()
    assert child(run, "d").status == "queued"


def test_of_several_that_end_at_once_each_lets_one_go() -> None:
    run = advance(make_parent(*"abcdefghi"))
    for _ in range(3):
        busy = [each for each in children(run) if each.status == "queued"]
        assert len(busy) == BOUND
        race([partial(engine.advance, each.pk) for each in busy])
        race([partial(turns.let_go, run.pk) for _ in range(4)])
    assert to_rest(run).status == "completed"


def test_of_two_that_look_at_once_one_lets_a_child_go() -> None:
    run = advance(make_parent(*"abcde"))
    Run.objects.filter(pk=child(run, "a").pk).update(status="waiting", token=1)
    meet_lock(partial(turns.let_go, run.pk), partial(turns.let_go, run.pk))
    assert statuses(run).count("queued") == BOUND


def test_a_killed_worker_does_not_raise_the_number_at_work(tmp_path: Path, workers: KillableWorkers) -> None:
    ledger = tmp_path / "ledger"
    run = make_parent(*"abcde", ledger=str(ledger))
    workers.kill(run, "after_spawn@fan_out", 4)
    assert statuses(run) == ["queued"] * BOUND + ["waiting"]
    run = to_rest(run)
    assert sorted(worked(ledger)) == list("abcde")


def test_a_held_one_is_not_woken_to_be_upgraded(monkeypatch: pytest.MonkeyPatch) -> None:
    """All held children of a version that is gone were at work at once."""
    run = advance(make_parent(*"abcd", modes={"a": "ask"}))
    Run.objects.filter(pk=child(run, "b").pk).update(status="waiting", token=1)
    monkeypatch.setattr(registry, "upcasting_agents", lambda: ["child_worker"])
    monkeypatch.setattr(registry, "way_of", lambda plan: plan)
    found = {each.pk for each in version_upgrade.waiting(limit=1000)}
    assert child(run, "b").pk in found
    assert child(run, "d").pk not in found
