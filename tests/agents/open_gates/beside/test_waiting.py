"""A step that waits beside an open gate goes on where it was once the decision is saved; no decision is overslept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from agents.models import Memo, StepCheckpoint, Wait
from approvals.models import Gate
from checkpoints import crash_points
from checkpoints.models import Run
from tests.agents.children.families import children, to_rest
from tests.agents.children.pages.test_page import page, text_of
from tests.agents.pages.moves.sent_orders import member
from tests.factories.driven_runs import advance, advance_to_rest, answer, make_run, open_gate, state, trail
from tests.harness.racing_threads import race

from ..launches import decide, done, open_steps


def busy(ledger: Path, does: str) -> Run:
    """A run whose step waits, with its gate open."""
    run = advance(make_run("busy", topic="tea", ledger=str(ledger), does=does))
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "work", ["agree"])
    return run


@pytest.mark.parametrize("does", ["sleep", "listen"])
def test_a_step_that_waits_keeps_its_place_when_a_gate_beside_it_is_decided(does: str, ledger: Path) -> None:
    run = busy(ledger, does)
    due = Wait.objects.get(run=run).due
    decide(run, "agree", "edit", arguments={"note": "by hand"})
    run = advance(run)
    assert (run.status, run.next_step, trail(run)[-1]) == ("waiting", "work", ("answered", "agree"))
    assert [wait.due for wait in Wait.objects.filter(run=run)] == [due]
    assert run.wake_at == due
    assert (Memo.objects.filter(run=run, name="call").count(), StepCheckpoint.objects.filter(run=run).count()) == (1, 1)
    assert (done(ledger).count("called"), done(ledger).count("counted")) == (1, 1)


def test_children_that_are_waited_for_are_not_started_again(ledger: Path) -> None:
    run = busy(ledger, "gather")
    to_rest(run)
    decide(run, "agree")
    run = to_rest(run)
    assert (run.status, run.awaited, trail(run)[-1]) == ("waiting", 2, ("answered", "agree"))
    assert len(children(run)) == 2
    for child in children(run):
        decide(child, "review")
    run = to_rest(run)
    assert (run.status, state(run)["worked"], len(children(run))) == ("completed", "done", 2)
    assert done(ledger).count("called") == 1


@pytest.mark.parametrize("does", ["sleep", "gather"])
def test_a_rejection_wakes_a_run_that_waits(does: str, ledger: Path) -> None:
    run = busy(ledger, does)
    decide(run, "agree", "reject", comment="No.", then="back", back_to="begin")
    run = advance(run)
    assert (run.status, open_steps(run), state(run)["note"]) == ("waiting", ["agree"], "tea 1")
    assert [kind for kind, _ in trail(run)].count("rewind") == 1


@pytest.fixture
def deciding_at() -> Iterator[Callable[[str, Callable[[], object]], None]]:
    """Have something decided once, as the engine passes a crash point in `work`."""
    before = list(crash_points._listeners)

    def at(place: str, decided: Callable[[], object]) -> None:
        left = [decided]

        def passed(name: str, step: str, value: object) -> None:
            if (name, step) == (place, "work") and left:
                left.pop()()

        crash_points.listen(passed)

    yield at
    crash_points._listeners[:] = before


@pytest.mark.parametrize(
    ("does", "place"),
    [("sleep", "before_wait"), ("listen", "before_wait"), ("gather", "before_gather"), ("fail", "before_gate")],
)
@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_decision_in_the_moment_in_which_the_run_falls_asleep_is_taken_up(
    verdict: str, does: str, place: str, ledger: Path, deciding_at: Callable[[str, Callable[[], object]], None]
) -> None:
    run = make_run("busy", topic="tea", ledger=str(ledger), does=does)
    said = {"then": "stop", "comment": "No."} if verdict == "reject" else {}
    deciding_at(place, lambda: race([partial(decide, run, "agree", verdict, **said)]))
    run = advance_to_rest(run)
    assert run.status == ("cancelled" if verdict == "reject" else "waiting")
    if does != "fail":
        assert trail(run)[-1] == ("answered", "agree")
    elif verdict == "approve":
        answer(run, "skip")
        assert advance_to_rest(run).status == "completed"
    assert not Gate.objects.open().filter(run=run).exists()


@pytest.mark.parametrize(
    ("does", "status", "offer"),
    [("sleep", "Waiting", "Wake it now"), ("listen", "Waiting", "Send this signal…"), ("gather", "Waiting", "")],
)
def test_the_pages_do_not_say_held_of_a_run_that_waits_for_something_else(
    does: str, status: str, offer: str, ledger: Path
) -> None:
    """With a gate open beside it a sleeping run had no countdown, and nobody could wake it from its page."""
    run = busy(ledger, does)
    html = page(run)
    said = text_of(html)
    assert status in said
    assert "Held at" not in said
    assert offer in said
    assert f"/gates/{open_gate(run).pk}/" in html
    assert "Its open gate is withdrawn" in said
    assert "goes on after a crash from a value kept" in said
    listed = text_of(member(run).get("/runs/").content.decode())
    assert "Held at" not in listed
