"""After a rewind a child is what its parent's branch did: taken over where it is equal, undone where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.errors import RewindRefused
from agents.models import ChildLink, Effect
from agents.moves import child_orders, rewind
from agents.moves.cancel import cancel
from agents.moves.fork import fork
from approvals.models import Gate
from checkpoints import actors, crash_points
from checkpoints.models import Event, Note, Run
from tests.agents.steps.killable_workers import KillableWorkers
from tests.checkpoints.retention.pruned_runs import keep, pruned, seqs
from tests.factories import ann
from tests.factories.driven_runs import advance, answer, decide, make_run, open_gate, state, trail

from .families import child, children, statuses, to_rest, worked


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What the children did outside, a line each."""
    return tmp_path / "ledger"


def payroll(ledger: Path, *names: str, **modes: str) -> Run:
    """A run that asks at the end, once its children have paid these names."""
    run = make_run("payroll", ledger=str(ledger), names=list(names), modes={"look": "", **modes})
    return to_rest(run)


def names(run: Run, at: int, *names: str) -> Run:
    """Edit the names in the state of this checkpoint."""
    patch: list[Any] = [{"op": "replace", "path": "/names", "value": list(names)}]
    rewind.edit(run, at=at, patch=patch, by=ann(run.team))
    return to_rest(run)


def before_the_fan_out(run: Run) -> int:
    """The number of the checkpoint from which the children were started first."""
    return trail(run).index(("step", "pay_all"))


def back(run: Run) -> Run:
    """Send the run back to before the fan-out."""
    rewind.rewind(run, to=before_the_fan_out(run), by=ann(run.team))
    return to_rest(run)


def test_equal_children_are_taken_over_and_nothing_is_done_again(ledger: Path) -> None:
    run = payroll(ledger, "a", "b")
    first = children(run)
    back(run)
    assert children(run) == first
    assert worked(ledger) == ["pay a", "pay b"]
    assert state(run)["paid"] == ["a, told", "b, told"]
    told = Event.objects.filter(kind="child.adopted", subject=f"run:{run.pk}").count()
    notes = [text for text in Note.objects.filter(run=run).values_list("text", flat=True) if "taken over" in str(text)]
    assert (told, len(notes)) == (2, 2)

    decide(run)
    assert to_rest(run).status == "completed"
    assert statuses(run) == ["completed", "completed"]


def test_only_what_an_edit_changed_runs_again_and_the_other_is_undone(ledger: Path) -> None:
    run = payroll(ledger, "a", "b")
    names(run, before_the_fan_out(run), "a", "c")
    assert [child(run, each).status for each in "abc"] == ["completed", "cancelled", "completed"]
    assert worked(ledger) == ["pay a", "pay b", "pay c", "take back b"]
    assert state(run)["paid"] == ["a, told", "c, told"]
    decide(run)
    assert to_rest(run).status == "completed"


def test_one_with_another_configuration_is_not_taken_over(ledger: Path) -> None:
    run = payroll(ledger, "a")
    first = child(run, "a")
    patch: list[Any] = [{"op": "replace", "path": "/bank", "value": "second"}]
    rewind.edit(run, at=before_the_fan_out(run), patch=patch, by=ann(run.team))
    to_rest(run)
    assert (len(children(run)), child(run, "a").pk != first.pk) == (2, True)
    assert worked(ledger) == ["pay a", "pay a", "take back a"]


def test_a_fork_that_starts_more_equal_ones_than_its_origin_starts_the_rest(ledger: Path) -> None:
    run = payroll(ledger, "a")
    patch: list[Any] = [{"op": "replace", "path": "/names", "value": ["a", "a"]}]
    made = to_rest(fork(run, at=before_the_fan_out(run), by=ann(run.team), patch=patch))
    assert [each.title for each in children(made)] == ["Child a"]
    assert state(made)["paid"] == ["a, told"] * 2
    assert worked(ledger) == ["pay a"] * 2


def test_one_that_is_lost_while_the_worker_looks_is_not_taken_over(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = payroll(ledger, "a", a="ask")
    back = before_the_fan_out_of(run)
    rewind.rewind(run, to=back, by=ann(run.team))
    lost = child(run, "a")

    def cancelled(name: str, *_: Any) -> None:
        if name == "before_adopt":
            cancel(lost, by=actors.SYSTEM, reason="not wanted")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(crash_points, "point", cancelled)
        advance(run)
    to_rest(run)
    assert (run.status, child(run, "a").status) == ("waiting", "waiting")
    assert child(run, "a").pk != lost.pk


def test_one_that_is_at_work_is_taken_over_too_and_its_gate_stays(ledger: Path) -> None:
    run = payroll(ledger, "a", "b", a="ask")
    gate = open_gate(child(run, "a"))
    rewind.rewind(run, to=1, by=ann(run.team))
    to_rest(run)
    gate.refresh_from_db()
    assert (gate.status, run.status, len(children(run))) == ("open", "waiting", 2)
    decide(child(run, "a"))
    to_rest(run)
    assert state(run)["paid"] == ["a, told", "b, told"]


def test_one_that_waits_for_a_person_is_withdrawn_where_the_edit_left_it_out(ledger: Path) -> None:
    run = payroll(ledger, "a", "b", a="ask")
    names(run, before_the_fan_out_of(run), "b")
    assert child(run, "a").status == "cancelled"
    assert Gate.objects.get(run=child(run, "a")).status == "withdrawn"
    assert child(run, "a").reason == f"R-{run.pk}, which started it, goes on without it."


def before_the_fan_out_of(run: Run) -> int:
    """The number of the checkpoint at which the fan-out waits."""
    return trail(run).index(("step", "prepare")) + 1


def test_what_was_left_behind_is_undone_before_the_run_ends(ledger: Path) -> None:
    """The new branch never comes to the step: the run waits until the child is undone, and ends then."""
    run = payroll(ledger, "a", "b")
    names(run, before_the_fan_out(run))  # no children at all
    assert worked(ledger) == ["pay a", "pay b"]
    decide(run)
    advance(run)
    assert run.status == "waiting"
    assert run.reason.startswith("Waits until 2 runs are undone: R-")
    run.wake(by=actors.SYSTEM)  # too early: it orders nothing twice
    advance(run)
    assert Event.objects.filter(kind="child.ordered", subject=f"run:{run.pk}").count() == 1
    assert to_rest(run).status == "completed"
    assert (worked(ledger)[:2], sorted(worked(ledger)[2:])) == (["pay a", "pay b"], ["take back a", "take back b"])
    assert statuses(run) == ["cancelled", "cancelled"]


def test_what_cannot_be_undone_is_kept(ledger: Path) -> None:
    run = payroll(ledger, "a", a="final")
    names(run, before_the_fan_out(run), "b")
    assert worked(ledger) == ["pay a", "tell a", "pay b", "take back a"]
    kept = Effect.objects.filter(run=child(run, "a"), undoes__isnull=True).order_by("pk")
    assert [(row.step, row.status) for row in kept] == [("pay", "undone"), ("tell", "kept")]


def test_one_whose_beginning_retention_removed_is_undone_all_the_same(ledger: Path) -> None:
    run = payroll(ledger, "a")
    keep(child(run, "a"), keep_last=1)
    pruned()
    assert seqs(child(run, "a"))[0] > 1
    names(run, before_the_fan_out(run), "b")
    gone = child(run, "a")
    assert (gone.status, worked(ledger)) == ("cancelled", ["pay a", "pay b", "take back a"])
    decide(run)
    assert to_rest(run).status == "completed"


def test_children_of_a_step_that_failed_and_was_caught_are_undone(ledger: Path) -> None:
    """No state counts on them; of a step that catches the error itself and returns they stand."""
    run = to_rest(make_run("rash", ledger=str(ledger)))
    assert (run.status, state(run)["told"]) == ("completed", "caught")
    assert (worked(ledger), child(run, "a").status) == (["pay a", "take back a"], "cancelled")
    run = to_rest(make_run("rash", ledger=str(ledger), swallows=True))
    assert (run.status, state(run)["told"]) == ("completed", "swallowed")
    assert (worked(ledger)[2:], child(run, "a").status) == (["pay a"], "completed")


def test_where_an_undo_fails_a_person_is_asked_and_the_parent_waits(ledger: Path) -> None:
    run = payroll(ledger, "a", a="stuck")
    names(run, before_the_fan_out(run))
    decide(run)
    to_rest(run)
    asked = child(run, "a")
    assert (run.status, run.awaited, asked.status) == ("waiting", 1, "waiting")
    answer(asked, "undone")
    assert to_rest(run).status == "completed"
    assert child(run, "a").status == "cancelled"


def test_a_state_that_counts_on_a_child_which_was_undone_is_no_place_to_go_back_to(ledger: Path) -> None:
    run = payroll(ledger, "a", "b")
    held = Run.objects.get(pk=run.pk).seq
    names(run, before_the_fan_out(run), "b")
    with pytest.raises(RewindRefused, match=f"counts on R-{child(run, 'a').pk}, which was undone since"):
        rewind.rewind(run, to=held, by=ann(run.team))


def test_an_output_that_counts_on_a_child_which_was_undone_is_not_reused(ledger: Path) -> None:
    run = payroll(ledger, "a")
    names(run, before_the_fan_out(run), "b")
    names(run, trail(run).index(("edit", "pay_all")) + 1, "a")
    assert [each.title for each in children(run)] == ["Child a", "Child b", "Child a"]
    assert statuses(run) == ["cancelled", "cancelled", "completed"]
    assert worked(ledger) == ["pay a", "pay b", "take back a", "pay a", "take back b"]


def test_a_step_that_is_reused_goes_on_counting_on_its_children(ledger: Path) -> None:
    run = payroll(ledger, "a")
    patch: list[Any] = [{"op": "replace", "path": "/before", "value": "otherwise"}]
    rewind.edit(run, at=1, patch=patch, by=ann(run.team))
    to_rest(run)
    assert ("reused", "pay_all") in trail(run)
    decide(run)
    assert to_rest(run).status == "completed"
    assert worked(ledger) == ["pay a"]
    assert len(ChildLink.objects.get(parent=run).landings) == 2


def test_a_person_orders_it_undone_at_once(ledger: Path) -> None:
    run = payroll(ledger, "a")
    names(run, before_the_fan_out(run))
    rewind.settle_now(run, by=ann(run.team))
    to_rest(run)
    assert (worked(ledger), child(run, "a").status) == (["pay a", "take back a"], "cancelled")
    assert open_gate(run).step == "look"
    with pytest.raises(RewindRefused, match="has left no effects"):
        rewind.settle_now(run, by=ann(run.team))


def test_a_run_that_is_cancelled_settles_what_it_left_behind_and_keeps_the_rest(ledger: Path) -> None:
    run = payroll(ledger, "a", "b", b="sleep")
    names(run, before_the_fan_out_of(run), "b")
    run = Run.objects.get(pk=run.pk)
    assert run.status == "waiting"
    cancel(run, by=actors.SYSTEM, reason="not wanted")
    assert to_rest(run).status == "cancelled"
    assert worked(ledger) == ["pay a", "pay b", "take back a"]


def test_a_fork_takes_what_a_completed_child_of_its_origin_did_and_starts_the_others(ledger: Path) -> None:
    run = payroll(ledger, "a", "b", b="sleep")
    made = fork(run, at=before_the_fan_out_of(run), by=ann(run.team))
    assert to_rest(made).status == "waiting"
    assert [each.title for each in children(made)] == ["Child b"]
    assert worked(ledger) == ["pay a", "pay b", "pay b"]
    cancel(made, by=actors.SYSTEM, reason="not wanted")
    assert child(run, "a").status == "completed"


@pytest.mark.parametrize("place", ["before_adopt@pay_all", "before_save@pay_all", "after_save@pay_all"])
def test_a_worker_that_is_killed_as_it_takes_children_over(place: str, ledger: Path, workers: KillableWorkers) -> None:
    run = payroll(ledger, "a", "b")
    patch: list[Any] = [{"op": "replace", "path": "/names", "value": ["a", "c"]}]
    rewind.edit(run, at=before_the_fan_out(run), patch=patch, by=ann(run.team))
    if place != "before_adopt@pay_all":
        advance(run)
        advance(child(run, "c"))
    workers.kill(run, place)
    to_rest(run)
    assert [child(run, each).status for each in "abc"] == ["completed", "cancelled", "completed"]
    assert worked(ledger) == ["pay a", "pay b", "pay c", "take back b"]


@pytest.mark.parametrize("place", ["before_settle", "before_undo@pay", "after_undo@pay"])
def test_a_worker_that_is_killed_as_children_are_undone(place: str, ledger: Path, workers: KillableWorkers) -> None:
    run = payroll(ledger, "a")
    names(run, before_the_fan_out(run))
    decide(run)
    if place == "before_settle":
        workers.kill(run, place)
    else:
        advance(run)
        child_orders.carry_out(run.pk)
        workers.kill(child(run, "a"), place)
    to_rest(run)
    if child(run, "a").status == "waiting":  # nobody knows whether the undo was sent
        answer(child(run, "a"), "undone")
        to_rest(run)
    assert (run.status, child(run, "a").status) == ("completed", "cancelled")
    assert worked(ledger).count("take back a") <= 1
