"""A step that waits beside an open gate goes on where it was once the decision is saved; ends withdraw the gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from agents.models import Effect, Memo, StepCheckpoint, Wait
from agents.moves import cancel, rewind
from agents.runner import engine
from agents.session import gates_beside
from approvals.models import Gate
from checkpoints import actors, crash_points
from checkpoints.models import Event, Run
from tests.agents.children.families import children, to_rest
from tests.agents.children.pages.test_page import page, text_of
from tests.agents.open_gates.launches import decide, done, gate, open_steps
from tests.agents.pages.moves.sent_orders import member
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, answer, make_run, open_gate, state, trail
from tests.harness.racing_threads import meet_lock, race


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
    ("does", "place", "verdict"),
    [
        ("sleep", "before_wait", "approve"),
        ("gather", "before_gather", "reject"),
        ("fail", "before_gate", "approve"),
        ("fail", "before_gate", "reject"),
    ],
)
def test_a_decision_in_the_moment_in_which_the_run_falls_asleep_is_taken_up(
    does: str, place: str, verdict: str, ledger: Path, deciding_at: Callable[[str, Callable[[], object]], None]
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
    ("does", "status", "offer"), [("sleep", "Waiting", "Wake it now"), ("listen", "Waiting", "Send this signal…")]
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


WITHDRAWN = ("withdrawn", "The run has ended.")


def ended_as(run: Run) -> tuple[str, str]:
    """How the gate that was open beside the run ended."""
    asked = gate(run, "agree")
    return asked.status, asked.outcome.words


def test_the_gate_of_a_run_whose_data_does_not_verify_is_withdrawn(ledger: Path) -> None:
    run = advance(make_run("busy", ledger=str(ledger), does="sleep"))
    StepCheckpoint.objects.filter(run=run).update(value=b"[]")
    run.wake(actors.SYSTEM)
    run = advance(run)
    assert (run.frozen, open_steps(run), ended_as(run)) == (True, [], WITHDRAWN)


def test_the_gate_of_a_run_that_a_person_stops_at_another_question_is_withdrawn(ledger: Path) -> None:
    run = advance_to_rest(make_run("busy", ledger=str(ledger), does="fail"))
    assert open_steps(run) == ["agree", "work"]
    decide(run, "work", "answer", answer={"choice": "stop", "value": None})
    run = advance(run)
    assert (run.status, open_steps(run), ended_as(run)) == ("failed", [], WITHDRAWN)
    assert Event.objects.filter(run_id=run.pk, kind="gate.withdrawn").count() == 1


def doubtful(ledger: Path, topic: str = "water") -> Run:
    """A run that left an effect behind of which nobody knows whether it happened, with its gate open."""
    run = advance_to_rest(make_run("doubtful", ledger=str(ledger), topic="tea"))
    assert open_steps(run) == ["agree", "book"]
    at = run.checkpoints.get(kind="asked").seq
    rewind.edit(run, at=at, patch=[{"op": "replace", "path": "/topic", "value": topic}], by=ann(run.team))
    return run


def test_that_question_and_a_person_who_cancels_its_run_do_not_wait_for_each_other(
    ledger: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The run was locked before its gates: the person, who has those, waited for the run, and the worker for them."""
    run = doubtful(ledger, "milk")
    cancelled = partial(cancel.cancel, run, by=ann(run.team), reason="not wanted")
    assert meet_lock(partial(gates_beside.lock, run.pk), partial(engine.advance, run.pk), cancelled) is True
    run.refresh_from_db()
    assert (run.ending, open_steps(run)) == ("cancelled", [])
    assert "database.lost" not in caplog.text


def test_a_run_that_is_cancelled_still_asks_about_what_it_left_behind(ledger: Path) -> None:
    run = advance_to_rest(doubtful(ledger))
    assert cancel.cancel(run, by=ann(run.team), reason="enough")
    run = advance_to_rest(run)
    assert (run.status, open_steps(run), gate(run, "agree").status) == ("waiting", ["book"], "withdrawn")
    decide(run, "book", "answer", answer={"choice": "was_done", "value": {"receipt": "r"}})
    run = advance_to_rest(run)
    assert (run.status, run.reason) == ("cancelled", "enough")
    assert Effect.objects.get(run=run, step="book", undoes=None, status="undone")
    assert ("answered", "agree") not in trail(run)


def test_a_repair_that_goes_back_to_before_it_was_asked_withdraws_a_gate(ledger: Path) -> None:
    run = advance_to_rest(make_run("redone", topic="tea", ledger=str(ledger)))
    assert ("repair", "use") in trail(run)
    first, second = Gate.objects.filter(run=run, step="agree").order_by("pk")
    assert (first.status, first.outcome.words) == ("withdrawn", "The run was sent back to before this was asked.")
    assert (open_steps(run), second.status, run.status) == (["agree"], "open", "waiting")
    assert list(second.replaces.all()) == [first]
    decide(run, "agree")
    assert advance_to_rest(run).status == "completed"
    assert done(ledger) == ["make", "use", "use", "make", "use"]
