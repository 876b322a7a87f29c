"""A run starts others and waits for them: no worker is held, each is started once, and none that ends is missed.

Only so many are at work at once. One that was lost is started anew only where a person has its step tried again. What
the children of a last step did is undone where nothing counts on it in the end.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.children import turns
from agents.definition import registry
from agents.errors import RewindRefused
from agents.models import ChildLink, Wait
from agents.moves import rewind
from agents.moves.cancel import cancel
from agents.runner import engine, version_upgrade
from agents.serving import sweeps
from agents.serving.sweeper import Sweeper
from agents.waits.step_waits import wake_now
from approvals.consequences.gate import GateImpacts
from checkpoints import actors
from checkpoints.models import Event, Run
from tests.agents.children.families import child, children, make_parent, statuses, to_rest, worked
from tests.agents.steps.killable_workers import KillableWorkers
from tests.factories import ann, make_team, make_user
from tests.factories.driven_runs import advance, advance_to_rest, answer, decide, failures, make_run, open_gate, state
from tests.harness.examples import first_alone
from tests.harness.racing_threads import meet_lock, race
from tests.harness.sent_statements import sent


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
    sweeps.wake_timers()
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


def test_a_step_that_swallows_its_wait_waits_all_the_same() -> None:
    run = advance(make_parent("a", swallows=True))
    assert (run.status, run.next_step) == ("waiting", "fan_out")
    run = to_rest(run)
    assert (state(run)["caught"], state(run)["found"]) == ("", ["found a"])


def test_the_first_that_completes_is_taken_and_the_others_are_cancelled() -> None:
    run = advance(make_parent("a", "b", "c", need="first", modes={"c": "ask"}))
    assert run.awaited == 1
    advance(child(run, "c"))  # it waits for a person
    advance(child(run, "b"))
    run = to_rest(run)
    assert state(run)["found"] == [None, "found b", None]
    assert [child(run, name).status for name in "abc"] == ["cancelled", "completed", "cancelled"]
    assert f"R-{run.pk}, which started it, no longer needs it" in child(run, "a").reason


def test_so_many_of_them_are_enough_and_one_that_failed_is_told() -> None:
    run = advance(make_parent("a", "b", "c", need=2))
    child(run, "a").cancel(by=actors.SYSTEM, reason="not wanted")
    run = to_rest(run)
    assert state(run)["found"] == ["", "found b", "found c"]


def test_one_that_is_lost_fails_the_step_until_a_person_says_try_again_and_it_is_started_anew(ledger: Path) -> None:
    run = advance(make_parent("a", "b", "c", ledger=str(ledger)))
    advance(child(run, "a"))
    lost = child(run, "b")
    lost.cancel(by=actors.SYSTEM, reason="not wanted")
    run.refresh_from_db()
    assert run.status == "queued"  # at once, although one is at work
    run = to_rest(run)
    assert (run.status, statuses(run)) == ("waiting", ["completed", "cancelled", "cancelled"])
    [failure] = failures(run)
    assert failure.error == f"R-{lost.pk}, which the step waits for, was cancelled. not wanted"
    answer(run, "retry")
    run = to_rest(run)
    assert (run.status, state(run)["found"]) == ("completed", ["found a", "found b", "found c"])
    assert worked(ledger) == ["a", "b", "c"]
    assert len(children(run)) == 5


def test_results_are_kept_for_the_step_that_is_tried_again(ledger: Path, workers: KillableWorkers) -> None:
    """The one that completed first stays the first, though a crash comes before the step is saved."""
    run = advance(make_parent("a", "b", need="first", ledger=str(ledger)))
    advance(child(run, "b"))
    workers.kill(run, "before_save@fan_out")
    assert ChildLink.objects.get(run=child(run, "a")).ordered == "cancel"
    run = to_rest(run)
    assert state(run)["found"] == [None, "found b"]


@pytest.mark.parametrize(
    ("place", "hit"),
    first_alone([("after_spawn", 2), ("before_gather", 1), ("before_spawn", 2), ("after_gather", 1)]),
)
def test_a_worker_that_is_killed_starts_no_child_twice(
    place: str, hit: int, ledger: Path, workers: KillableWorkers
) -> None:
    run = make_parent("a", "b", "a", ledger=str(ledger))
    workers.kill(run, f"{place}@fan_out", hit)
    run = to_rest(run)
    assert (run.status, state(run)["found"]) == ("completed", ["found a", "found b", "found a"])
    assert sorted(worked(ledger)) == ["a", "a", "b"]


@pytest.mark.parametrize("place", first_alone(["after_save@give_up", "before_save@give_up"]))
def test_the_end_of_a_child_and_the_waking_of_its_parent_are_one_commit(place: str, workers: KillableWorkers) -> None:
    run = advance(make_parent("a"))
    [only] = children(run)
    workers.kill(only, place)
    run.refresh_from_db()
    only.refresh_from_db()
    ended = place.startswith("after")
    assert (only.status, run.status) == (("completed", "queued") if ended else ("running", "waiting"))
    assert to_rest(run).status == "completed"


def test_a_parent_that_sees_its_child_at_work_is_woken_by_the_end_that_it_did_not_see() -> None:
    """The child's end is not committed when the parent counts, and the child sees a parent that is at work."""
    run = advance(make_parent("a"))
    Run.objects.filter(pk=run.pk).update(status="queued", awaited=0)
    [only] = children(run)
    meet_lock(lambda: advance(only), lambda: engine.advance(run.pk))
    assert to_rest(run).status == "completed"


def test_children_have_children_and_a_family_so_many_generations_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    run = to_rest(make_run("nested", depth=3))
    assert (run.status, state(run)["below"]) == ("completed", 3)
    monkeypatch.setattr("agents.children.spawn.DEEPEST", 2)
    run = to_rest(make_run("nested", depth=3))
    assert run.status == "waiting"
    lowest = Run.objects.filter(plan__agent="nested").latest("pk")
    assert "2 generations below the first" in failures(lowest)[0].error


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("unknown", "There is no agent named nobody"),
        ("input", "spawn('child_worker') was refused"),
        ("odd", "give it what JSON can say"),
        ("need", "a number from 1 to 1; it got 2"),
        ("gate", "look is a gate, which starts no runs"),
        ("twice", "gather() takes each child once."),
        ("strange", "is no child of this run"),  # a number from the state gave the result of any team's run
        ("missing", "is no child of this run"),
    ],
)
def test_what_does_not_fit_fails_the_step(mode: str, told: str) -> None:
    advance_to_rest(make_run("child_worker"))
    run = advance_to_rest(make_run("misled", mode=mode))
    assert told in failures(run)[0].error


def test_the_number_of_children_and_the_size_of_their_results_have_a_bound(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    run = make_parent("a", "b", "c", "d", "e", "f")
    settings.HOLDPOINT_STATE_LIMIT = 600
    to_rest(run)
    assert "bytes; 600 are the most. Gather fewer children at a time, or let them keep less" in failures(run)[0].error
    settings.HOLDPOINT_STATE_LIMIT = 12_000
    answer(run, "retry")
    assert state(to_rest(run))["after"] == "6 found"
    monkeypatch.setattr("agents.children.spawn.MOST", 2)
    run = advance_to_rest(make_parent("a", "b", "c"))
    assert "fan_out starts more than 2 runs" in failures(run)[0].error
    run = advance_to_rest(make_run("misled", mode="empty"))
    assert (run.status, state(run)["ended"]) == ("completed", True)  # to gather none is to wait for none


def failed(ledger: Path) -> Run:
    """A run whose last step has failed, since one of its two children, which both paid, was cancelled."""
    run = to_rest(make_run("strict", ledger=str(ledger), names=["a", "b"], modes={"b": "sleep"}))
    cancel(child(run, "b"), by=actors.SYSTEM, reason="not wanted")
    return to_rest(run)


def said(run: Run, choice: str) -> list[str]:
    """What is said to become of the children by this answer."""
    gate = open_gate(run)
    found = GateImpacts(gate, gate.standing().card, gate.standing().state_patch).answering(choice)
    assert found is not None
    return [str(each.fate) for each in found.children]


def test_if_it_is_skipped_what_they_did_is_undone(ledger: Path) -> None:
    run = failed(ledger)
    assert said(run, "skip") == ["undone", "undone"]
    answer(run, "skip")
    assert to_rest(run).status == "completed"
    assert (worked(ledger)[:2], sorted(worked(ledger)[2:])) == (["pay a", "pay b"], ["take back a", "take back b"])


def test_if_it_is_tried_again_the_one_that_was_lost_is_undone_before_the_run_ends(ledger: Path) -> None:
    run = failed(ledger)
    lost = child(run, "b")
    answer(run, "retry")
    advance(run)
    anew = advance(child(run, "b"))
    wake_now(anew, by=actors.SYSTEM)
    advance(anew)
    run.refresh_from_db()
    assert (advance(run).status, run.reason) == ("waiting", f"Waits until R-{lost.pk} is undone")
    assert to_rest(run).status == "completed"
    assert worked(ledger) == ["pay a", "pay b", "pay b", "take back b"]


def test_if_a_person_accepts_what_was_refused_they_stand(ledger: Path) -> None:
    run = to_rest(make_run("strict", ledger=str(ledger), names=["a"], modes={"strict": ""}))
    assert said(run, "accept") == ["stands"]
    answer(run, "accept")
    run = to_rest(run)
    assert (run.status, state(run)["paid"], statuses(run)) == ("completed", ["a, told"], ["completed"])
    assert worked(ledger) == ["pay a"]
    assert ChildLink.objects.get(run=children(run)[0]).landings == [run.head]


def waiting(ledger: Path, need: int, **modes: str) -> Run:
    """A run that waits for so many of its payments, with a gate open beside it."""
    run = make_run("asks_beside", ledger=str(ledger), names=["a", "b", "c"], modes=modes, need=need)
    return to_rest(run)


def test_a_decision_beside_the_run_starts_no_lost_child_again(ledger: Path) -> None:
    run = waiting(ledger, 2, a="sleep", b="sleep")
    first = children(run)
    child(run, "a").cancel(by=actors.SYSTEM, reason="not wanted")
    assert open_gate(run).step == "agree"
    decide(run)
    run = to_rest(run)
    assert run.status == "waiting"
    assert children(run) == first
    assert sorted(worked(ledger)) == ["pay a", "pay b", "pay c"]


def test_the_losers_of_the_first_are_not_started_again(ledger: Path) -> None:
    run = waiting(ledger, 1, a="sleep", b="sleep", wait="")
    assert statuses(run) == ["cancelled", "cancelled", "completed"]
    decide(run)
    run = to_rest(run)
    assert run.reason == "Waits for the signal go"
    assert statuses(run) == ["cancelled", "cancelled", "completed"]


def test_a_child_costs_a_fixed_number_of_statements_however_many_there_are() -> None:
    """A figure that falls may be written down here; one that rises needs a reason."""

    def of(many: int) -> tuple[int, int]:
        run = make_parent(*(f"n{number}" for number in range(many)))
        with sent() as starting:
            advance(run)
        for number in range(many):
            advance(child(run, f"n{number}"))
        run.refresh_from_db()
        with sent() as gathering:
            engine.advance(run.pk)
        assert to_rest(run).status == "completed"
        return len(starting), len(gathering)

    of(1)
    few, many = of(1), of(6)
    assert (many[0] - few[0], many[1] - few[1]) == (5 * 12, 5)  # to start them; to read their states


BOUND = 3  # of the parent's class


def held(parent: Run) -> int:
    """How many of its children wait for their turn."""
    return ChildLink.objects.filter(parent=parent, held=True).count()


def test_so_many_are_started_the_others_are_held_and_one_that_ends_lets_the_next_go() -> None:
    run = advance(make_parent(*"abcde"))
    assert statuses(run) == ["queued"] * BOUND + ["waiting"] * 2
    assert (held(run), run.awaited) == (2, 5)
    last = child(run, "e")
    assert last.reason == "Waits until fewer runs of its parent are at work"
    told = Event.objects.filter(subject=f"run:{last.pk}").order_by("id").values_list("kind", "version")
    assert list(told) == [("run.started", 0), ("run.waiting", 1)]
    assert advance(last).status == "waiting"  # no worker can claim it
    advance(child(run, "b"))
    assert statuses(run) == ["queued", "completed", "queued", "queued", "waiting"]
    assert state(to_rest(run))["found"] == [f"found {name}" for name in "abcde"]
    assert held(run) == 0


@pytest.mark.parametrize("mode", ["ask", "sleep"])
def test_one_that_waits_for_a_person_or_a_time_is_not_at_work(mode: str) -> None:
    run = advance(make_parent(*"abcd", modes={"a": mode}))
    assert advance(child(run, "a")).status == "waiting"
    assert child(run, "d").status == "queued"
    if mode == "ask":
        decide(child(run, "a"))  # one that goes on after a decision is not held
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


def test_of_several_that_end_at_once_each_lets_one_go() -> None:
    run = advance(make_parent(*"abcdef"))
    for _ in range(2):
        busy = [each for each in children(run) if each.status == "queued"]
        assert len(busy) == BOUND
        race([partial(engine.advance, each.pk) for each in busy])
        race([partial(turns.let_go, run.pk) for _ in range(2)])
    assert to_rest(run).status == "completed"


def test_of_two_that_look_at_once_one_lets_a_child_go() -> None:
    run = advance(make_parent(*"abcde"))
    Run.objects.filter(pk=child(run, "a").pk).update(status="waiting", token=1)
    meet_lock(partial(turns.let_go, run.pk), partial(turns.let_go, run.pk))
    assert statuses(run).count("queued") == BOUND


def test_a_killed_worker_does_not_raise_the_number_at_work(ledger: Path, workers: KillableWorkers) -> None:
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
