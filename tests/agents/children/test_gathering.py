"""A run starts others and waits for them: no worker is held, each is started once, and none that ends is missed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.children import gather
from agents.children.gather import needed_of
from agents.errors import RewindRefused
from agents.models import ChildLink, Wait
from agents.runner import engine
from agents.serving import timers
from agents.waits.suspend import wake_now
from checkpoints import actors
from checkpoints.models import Event, Run
from tests.agents.steps.killable_workers import KillableWorkers
from tests.factories import make_team, make_user
from tests.factories.driven_runs import advance, advance_to_rest, answer, failures, make_run, state
from tests.harness.racing_threads import meet_lock, race

from .families import child, children, make_parent, statuses, to_rest, worked


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The names for which children worked, a line each."""
    return tmp_path / "ledger"


def test_a_run_waits_for_its_children_and_gets_their_results_in_order(ledger: Path) -> None:
    run = advance(make_parent("a", "b", ledger=str(ledger)))
    assert (run.status, run.awaited, run.attempts, run.lease_until) == ("waiting", 2, 0, None)
    assert run.reason == "Waits for 2 runs that it started"
    first, second = children(run)
    advance(second)
    run.refresh_from_db()
    assert (run.status, run.awaited) == ("waiting", 1)
    advance(first)
    run.refresh_from_db()
    assert (run.status, run.awaited) == ("queued", 0)
    advance(run)
    assert run.status == "completed"
    assert state(run)["found"] == ["found a", "found b"]
    assert worked(ledger) == ["b", "a"]


def test_a_time_that_has_passed_is_not_what_a_run_waits_for_once_it_waits_for_children(ledger: Path) -> None:
    """Its page named the time, and offered to wake it."""
    run = advance(make_run("strict", ledger=str(ledger), names=["a"], modes={"late": ""}))
    Wait.objects.filter(run=run).update(due=Now())
    Run.objects.filter(pk=run.pk).update(wake_at=Now())
    timers.wake_timers()
    assert (advance(run).status, run.awaited, Wait.objects.current(run)) == ("waiting", 1, None)
    with pytest.raises(RewindRefused, match="not waiting for a time"):
        wake_now(run, by=actors.SYSTEM)


def test_a_child_belongs_to_the_team_and_the_person_of_its_parent() -> None:
    team = make_team()
    ann = make_user("ann", team)
    run = advance(make_run("parent", team=team, started_by=ann, names=["a"]))
    [made] = children(run)
    assert (made.team_id, made.started_by, made.started_as) == (team.pk, ann, "agent:parent")
    assert (made.title, made.parent_id, made.lineage) == ("Child a", run.pk, made.pk)
    row = ChildLink.objects.get(run=made)
    assert (row.parent_id, row.step, row.number, row.agent) == (run.pk, "fan_out", 1, "child_worker")
    told = Event.objects.get(kind="child.started", subject=f"run:{run.pk}")
    assert told.actor == "agent:parent"


def test_equal_children_of_one_step_are_several_runs(ledger: Path) -> None:
    run = to_rest(make_parent("a", "a", "a", ledger=str(ledger)))
    assert state(run)["found"] == ["found a"] * 3
    assert len(children(run)) == 3
    assert worked(ledger) == ["a"] * 3


def test_a_step_that_swallows_its_wait_waits_all_the_same() -> None:
    run = advance(make_parent("a", swallows=True))
    assert (run.status, run.next_step) == ("waiting", "fan_out")
    run = to_rest(run)
    assert (state(run)["caught"], state(run)["found"]) == ("", ["found a"])


def test_children_that_nobody_gathers_go_on_by_themselves(ledger: Path) -> None:
    run = advance(make_parent("a", need="none", ledger=str(ledger)))
    assert (run.status, statuses(run)) == ("completed", ["queued"])
    to_rest(run)
    assert statuses(run) == ["completed"]


def test_the_first_that_completes_is_taken_and_the_others_are_cancelled() -> None:
    run = advance(make_parent("a", "b", "c", need="first", modes={"c": "ask"}))
    assert run.awaited == 1
    advance(child(run, "c"))  # it waits for a person
    advance(child(run, "b"))
    run = to_rest(run)
    assert state(run)["found"] == [None, "found b", None]
    assert [child(run, name).status for name in "abc"] == ["cancelled", "completed", "cancelled"]
    assert f"R-{run.pk}, which started it, no longer needs it" in child(run, "a").reason


def test_of_two_that_completed_before_the_parent_looks_the_first_counts() -> None:
    run = advance(make_parent("a", "b", "c", need="first"))
    advance(child(run, "b"))
    advance(child(run, "a"))
    assert state(to_rest(run))["found"] == [None, "found b", None]


def test_so_many_of_them_are_enough_and_one_that_failed_is_told() -> None:
    run = advance(make_parent("a", "b", "c", need=2))
    child(run, "a").cancel(by=actors.SYSTEM, reason="not wanted")
    run = to_rest(run)
    assert state(run)["found"] == ["", "found b", "found c"]


def test_one_that_is_lost_fails_the_step_and_the_others_are_cancelled() -> None:
    run = advance(make_parent("a", "b", "c"))
    child(run, "b").cancel(by=actors.SYSTEM, reason="not wanted")
    run.refresh_from_db()
    assert run.status == "queued"  # at once, although two are at work
    assert statuses(run) == ["queued", "cancelled", "queued"]
    run = to_rest(run)
    assert (run.status, statuses(run)) == ("waiting", ["cancelled"] * 3)
    [failure] = failures(run)
    lost = child(run, "b")
    assert failure.error == f"R-{lost.pk}, which the step waits for, was cancelled. not wanted"


def test_if_a_person_says_try_again_those_that_were_lost_are_started_anew(ledger: Path) -> None:
    run = advance(make_parent("a", "b", "c", ledger=str(ledger)))
    advance(child(run, "a"))
    child(run, "b").cancel(by=actors.SYSTEM, reason="not wanted")
    run = to_rest(run)
    answer(run, "retry")
    run = to_rest(run)
    assert (run.status, state(run)["found"]) == ("completed", ["found a", "found b", "found c"])
    assert worked(ledger) == ["a", "b", "c"]
    assert len(children(run)) == 5


def test_one_that_had_completed_before_it_was_told_to_stop_keeps_its_result(ledger: Path) -> None:
    run = advance(make_parent("a", "b", ledger=str(ledger)))
    child(run, "a").cancel(by=actors.SYSTEM, reason="not wanted")
    advance(run)
    advance(child(run, "b"))
    assert to_rest(run).status == "waiting"
    answer(run, "retry")
    assert to_rest(run).status == "completed"
    assert worked(ledger) == ["b", "a"]


def test_results_are_kept_for_the_step_that_is_tried_again(ledger: Path, workers: KillableWorkers) -> None:
    """The one that completed first stays the first, though a crash comes before the step is saved."""
    run = advance(make_parent("a", "b", need="first", ledger=str(ledger)))
    advance(child(run, "b"))
    workers.kill(run, "before_save@fan_out")
    assert ChildLink.objects.get(run=child(run, "a")).ordered == "cancel"
    run = to_rest(run)
    assert state(run)["found"] == [None, "found b"]


@pytest.mark.parametrize("place", ["before_spawn", "after_spawn", "before_gather", "after_gather"])
@pytest.mark.parametrize("hit", [1, 2])
def test_a_worker_that_is_killed_starts_no_child_twice(
    place: str, hit: int, ledger: Path, workers: KillableWorkers
) -> None:
    run = make_parent("a", "b", "a", ledger=str(ledger))
    workers.kill(run, f"{place}@fan_out", 1 if "gather" in place else hit)
    run = to_rest(run)
    assert (run.status, state(run)["found"]) == ("completed", ["found a", "found b", "found a"])
    assert sorted(worked(ledger)) == ["a", "a", "b"]


@pytest.mark.parametrize("place", ["before_save@give_up", "after_save@give_up", "after_commit@give_up"])
def test_the_end_of_a_child_and_the_waking_of_its_parent_are_one_commit(place: str, workers: KillableWorkers) -> None:
    run = advance(make_parent("a"))
    [only] = children(run)
    workers.kill(only, place)
    run.refresh_from_db()
    only.refresh_from_db()
    assert (only.status, run.status) in (("running", "waiting"), ("completed", "queued"))
    assert (only.status == "completed") == (not place.startswith("before"))
    assert to_rest(run).status == "completed"


def test_a_child_that_ends_while_its_parent_falls_asleep_is_never_missed() -> None:
    for _ in range(15):
        run = make_parent("a", "b")
        advance(run)
        Run.objects.filter(pk=run.pk).update(status="queued", awaited=0)  # woken by something else
        one, two = children(run)
        race([partial(engine.advance, each.pk) for each in (run, one, two)])
        assert to_rest(run).status == "completed"


def test_a_parent_that_sees_its_child_at_work_is_woken_by_the_end_that_it_did_not_see() -> None:
    """The child's end is not committed when the parent counts, and the child sees a parent that is at work."""
    run = advance(make_parent("a"))
    Run.objects.filter(pk=run.pk).update(status="queued", awaited=0)
    [only] = children(run)
    meet_lock(lambda: advance(only), lambda: engine.advance(run.pk))
    run.refresh_from_db()
    assert run.status in ("queued", "completed")
    assert to_rest(run).status == "completed"


def test_many_children_that_end_at_once_are_all_counted() -> None:
    run = make_parent(*"abc", "d", "e", "f")
    run = advance(run)
    while run.status == "waiting":
        queued = [each for each in children(run) if each.status == "queued"]
        assert queued
        race([partial(engine.advance, each.pk) for each in queued])
        run.refresh_from_db()
    assert to_rest(run).status == "completed"


def test_children_have_children() -> None:
    run = to_rest(make_run("nested", depth=3))
    assert (run.status, state(run)["below"]) == ("completed", 3)


def test_a_family_has_so_many_generations_at_most() -> None:
    run = to_rest(make_run("nested", depth=12))
    assert run.status == "waiting"
    lowest = Run.objects.filter(plan__agent="nested").latest("pk")
    assert "10 generations below the first" in failures(lowest)[0].error


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("unknown", "There is no agent named nobody"),
        ("input", "spawn('child_worker') was refused"),
        ("odd", "give it what JSON can say"),
        ("need", "a number from 1 to 1; it got 2"),
        ("gate", "look is a gate, which starts no runs"),
    ],
)
def test_what_does_not_fit_fails_the_step(mode: str, told: str) -> None:
    run = advance_to_rest(make_run("misled", mode=mode))
    assert told in failures(run)[0].error


def test_a_child_is_gathered_once_and_the_number_of_them_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    run = advance_to_rest(make_run("misled", mode="twice"))
    assert "gather() takes each child once." in failures(run)[0].error
    monkeypatch.setattr("agents.children.spawn.MOST", 2)
    run = advance_to_rest(make_parent("a", "b", "c"))
    assert "fan_out starts more than 2 runs" in failures(run)[0].error


def test_to_gather_none_is_to_wait_for_none() -> None:
    run = advance_to_rest(make_run("misled", mode="empty"))
    assert (run.status, state(run)["ended"]) == ("completed", True)


def test_which_results_are_needed_is_found_once_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was found for each child, by sorting them all."""
    run = advance(make_parent(*"abc"))
    for name in "abc":
        advance(child(run, name))
    asked: list[int] = []

    def counted(found: Sequence[Run], need: int) -> set[int]:
        asked.append(need)
        return needed_of(found, need)

    monkeypatch.setattr(gather, "needed_of", counted)
    assert state(to_rest(run))["found"] == ["found a", "found b", "found c"]
    assert asked == [3]


def test_results_that_are_larger_than_a_state_may_be_are_not_kept(settings: Any) -> None:
    names = [f"n{number}" for number in range(12)]
    run = make_parent(*names)
    settings.HOLDPOINT_STATE_LIMIT = 1200
    to_rest(run)
    assert "bytes; 1,200 are the most. Gather fewer children at a time, or let them keep less" in failures(run)[0].error
    settings.HOLDPOINT_STATE_LIMIT = 12_000
    answer(run, "retry")
    assert state(to_rest(run))["after"] == "12 found"


@pytest.mark.parametrize("mode", ["strange", "missing"])
def test_only_children_of_the_run_are_gathered(mode: str) -> None:
    """A number from the state gave the result of any team's run."""
    advance_to_rest(make_run("child_worker"))
    run = advance_to_rest(make_run("misled", mode=mode))
    assert "is no child of this run" in failures(run)[0].error
