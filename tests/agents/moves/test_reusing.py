"""After an edit only what the change touches runs again; what a rewind is sent to always does."""

from __future__ import annotations

from tests.factories.driven_runs import advance_to_rest, make_run, open_gate, state

from .moved_runs import after, before, edit, lines, rewind, since


def test_only_the_steps_that_read_the_change_run_again(ledger: str) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger, a=1, b=1))
    assert (run.status, lines(ledger)) == ("completed", ["twice 1", "aside 1", "judge 2", "look", "say False"])
    seq = run.seq
    edit(run, 1, b=5)
    advance_to_rest(run)
    assert lines(ledger)[5:] == ["aside 5", "look", "say False"]
    assert since(run, seq) == [
        ("edit", "twice"), ("reused", "twice"), ("step", "aside"), ("reused", "judge"), ("step", "look"),
        ("step", "say"),
    ]  # fmt: skip
    assert (state(run)["said"], state(run)["log"]) == ("False 6", ["twice", "aside", "judge", "say"])


def test_an_equal_output_stops_the_ripple(ledger: str) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger, a=1, b=1))
    edit(run, 1, a=2)
    advance_to_rest(run)
    assert lines(ledger)[5:] == ["twice 2", "judge 4", "look"]
    assert state(run)["said"] == "False 2"


def test_what_a_rewind_is_sent_to_always_runs_and_what_follows_is_reused(ledger: str) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger))
    seq = run.seq
    rewind(run, before(run, "twice"))
    advance_to_rest(run)
    assert lines(ledger)[5:] == ["twice 1", "look"]
    assert since(run, seq)[:3] == [("rewind", "twice"), ("step", "twice"), ("reused", "aside")]


def test_going_back_to_what_it_was_before_an_edit_reuses_all_of_it(ledger: str) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger, a=1, b=1))
    edit(run, 1, a=100, b=2)
    advance_to_rest(run)
    told = len(lines(ledger))
    edit(run, after(run, "twice"), b=1, a=100)
    advance_to_rest(run)
    assert lines(ledger)[told:] == ["look", "say True"]


def test_an_appended_list_is_appended_to_again_and_not_taken_whole(ledger: str) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger))
    edit(run, 1, log=["from a person"])
    advance_to_rest(run)
    assert lines(ledger)[5:] == ["look"]
    assert state(run)["log"] == ["from a person", "twice", "aside", "judge", "say"]


def test_a_recorded_change_of_a_list_that_does_not_fit_the_list_of_now_is_not_taken() -> None:
    """The runner itself failed of it, again and again."""
    run = advance_to_rest(make_run("trimmer"))
    assert state(run)["log"] == ["a", "t"]
    edit(run, 1, log=[])
    advance_to_rest(run)
    gate = open_gate(run)
    assert (gate.kind, gate.step) == ("recovery", "trim")
    assert "has 0 items" in gate.standing().card.summary
