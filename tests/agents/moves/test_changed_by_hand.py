"""What people change in a run's state after a gate, where nobody agrees to it, is not what was approved."""

from __future__ import annotations

from typing import Any

import pytest

from agents.definition import registry
from agents.moves import impact
from agents.moves import rewind as rewinds
from approvals.consequences.gate import GateImpacts
from approvals.impact import Impact
from approvals.models import Gate
from checkpoints.models import Run
from checkpoints.models.checkpoint import Note
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, decide, make_run, open_gate, state, trail

from .moved_runs import after, before, edit, lines, rewind


@pytest.fixture
def booked(ledger: str, settings: Any) -> Run:
    """A booking that was approved, and has not paid yet."""
    settings.HOLDPOINT_TIME_SLICE = 0  # a step at a time
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    while run.next_step != "pay":
        run = advance(run)
    return run


def test_what_a_step_after_the_gate_wrote_and_a_person_changed_is_asked_about(booked: Run, ledger: str) -> None:
    """It was paid for with nobody asked: the approval fixed nothing that a step after the gate writes."""
    edit(booked, after(booked, "book"), room="the royal suite")
    run = advance_to_rest(booked)
    assert run.status == "waiting"
    assert trail(run)[-1] == ("reopen", "pay")
    assert "pay" not in lines(ledger, words=1)
    gate = open_gate(run)
    changed = [row for row in changes(gate) if row["pointer"] == "/room"]
    assert [(row["kind"], row["after"]) for row in changed] == [("changed", "the royal suite")]
    assert changed[0]["before"].startswith("room ")
    assert "Somebody changed room in the state after “Review” allowed “Pay”." in notes(run)


def test_a_yes_to_the_change_pays(booked: Run, ledger: str) -> None:
    edit(booked, after(booked, "book"), room="the royal suite")
    run = advance_to_rest(booked)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert [each for each in lines(ledger, words=4) if each.startswith("pay")] == ["pay the royal suite"]


def test_a_change_of_what_has_nothing_to_do_with_it_keeps_the_approval(booked: Run, ledger: str) -> None:
    edit(booked, after(booked, "book"), told="nobody yet", undo_flag="elsewhere")
    assert advance_to_rest(booked).status == "completed"
    assert lines(ledger, words=1) == ["book", "pay", "tell"]


def test_a_change_that_is_left_by_a_rewind_counts_no_more(booked: Run, ledger: str) -> None:
    at = after(booked, "book")
    edit(booked, at, room="the royal suite")
    advance_to_rest(booked)
    rewind(booked, at)
    assert advance_to_rest(booked).status == "completed"
    assert lines(ledger, words=1) == ["book", "pay", "tell"]


@pytest.mark.parametrize("words", ["", "and gold"])
def test_the_words_of_a_rewind_are_a_change_too(ledger: str, settings: Any, words: str) -> None:
    """Somebody who may not decide told the agent what to send, after it was approved."""
    settings.HOLDPOINT_AGENTS = ["tests.agents.moves.letter_agents"]
    registry.forget()
    settings.HOLDPOINT_TIME_SLICE = 0
    run = advance_to_rest(make_run("letters", ledger=ledger))
    decide(run)
    while run.next_step != "send":
        run = advance(run)
    at = before(run, "draft")
    told = impact.of_rewind(run, at, words)
    rewind(run, at, feedback=words)
    run = advance_to_rest(run)
    if not words:
        assert ("will", "review", "permit") not in previewed(told)
        assert (run.status, lines(ledger)) == ("completed", ["send tea"])
        return
    assert previewed(told)[-2:] == [("may", "send", "permit"), ("will", "review", "permit")]
    assert (run.status, lines(ledger)) == ("waiting", [])
    assert [row["pointer"] for row in changes(open_gate(run))] == ["/feedback/0"]


def previewed(told: Impact) -> list[tuple[str, str, str]]:
    """(verdict, step, why) of what is to come."""
    return [(str(row.verdict), row.step, row.why) for row in told.ahead]


def test_an_edit_is_foretold_to_need_another_permission(booked: Run) -> None:
    at = after(booked, "book")
    told = impact.of_edit(booked, at, [{"op": "replace", "path": "/room", "value": "the royal suite"}])
    assert previewed(told) == [("may", "pay", "permit"), ("will", "review", "permit")]
    assert told.asks == "review"
    kept = impact.of_edit(booked, at, [{"op": "replace", "path": "/told", "value": "nobody yet"}])
    assert previewed(kept)[0] == ("will", "pay", "new")


def test_a_move_after_the_edit_is_foretold_with_it(booked: Run) -> None:
    at = after(booked, "book")
    edit(booked, at, room="the royal suite")
    assert previewed(impact.of_rewind(booked, booked.seq))[:2] == [
        ("may", "pay", "permit"),
        ("will", "review", "permit"),
    ]
    assert previewed(impact.of_rewind(booked, at))[0] == ("will", "pay", "new")


def test_a_yes_at_the_gate_that_was_opened_again_is_foretold_to_pay(booked: Run) -> None:
    edit(booked, after(booked, "book"), room="the royal suite")
    gate = open_gate(advance_to_rest(booked))
    standing = gate.standing()
    told = GateImpacts(gate, standing.card, standing.state_patch).approve()
    assert previewed(told)[0] == ("will", "pay", "new")


def changes(gate: Gate) -> list[dict[str, Any]]:
    """What the gate that was opened again shows as different."""
    reopened = gate.asked.reopened
    assert reopened is not None
    return [dict(row) for row in reopened["changes"]]


def notes(run: Run) -> list[str]:
    """What the run's steps, and the runner, noted."""
    return [bytes(text).decode() for text in Note.objects.filter(run=run).values_list("text", flat=True)]


def test_why_it_was_changed_stands_behind_what_was_changed_in_the_list_of_words(booked: Run) -> None:
    """The words went to the list as it was before, and what the person had put into it was gone."""
    typed = [{"text": "Two more.", "by": "Ann", "gate": 4}]
    patch = [{"op": "add", "path": "/feedback", "value": typed}]
    rewinds.edit(booked, at=1, patch=patch, by=ann(booked.team), feedback="They asked for it.")
    *before_it, why = state(booked)["feedback"]
    assert before_it == typed
    assert (why["text"], why["by"]) == ("They asked for it.", "Ann Okafor")
