"""Effects that a run leaves behind are adopted, or undone before what takes their place, or named as kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.errors import NeedsConfirmation, RewindRefused
from agents.moves import cancel
from agents.moves import rewind as rewinds
from checkpoints.models import Event, Hold, Run
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, answer, decide, make_run, open_gate, state

from .moved_runs import after, before, edit, fates, lines, rewind, since


def booked(ledger: str, **input: Any) -> Run:
    """A finished booking."""
    run = advance_to_rest(make_run("booking", ledger=ledger, **input))
    decide(run)
    assert advance_to_rest(run).status == "completed"
    return run


def test_removing_one_payment_of_a_loop_undoes_it_and_pays_nobody_else(ledger: str) -> None:
    run = advance_to_rest(make_run("payments", ledger=ledger, people=["A", "B", "B", "C"]))
    assert lines(ledger) == ["pay A", "pay B", "pay B", "pay C"]
    edit(run, 1, people=["B", "B", "C"])
    assert Hold.objects.standing().filter(run=run, kind="effect").count() == 4
    assert advance_to_rest(run).status == "completed"
    (cancelled,) = Path(ledger).read_text().splitlines()[4:]
    assert cancelled.startswith("cancel A-")
    assert fates(run) == [("pay", "undone"), ("pay", "done"), ("pay", "done"), ("pay", "done"), ("undo of pay", "done")]
    assert [each[0] for each in state(run)["receipts"]] == ["B", "B", "C"]
    assert not Hold.objects.standing().filter(run=run, kind="effect").exists()


def test_adding_a_payment_before_the_others_pays_it_alone(ledger: str) -> None:
    run = advance_to_rest(make_run("payments", ledger=ledger, people=["A", "B"]))
    edit(run, 1, people=["X", "A", "B"])
    advance_to_rest(run)
    assert lines(ledger)[2:] == ["pay X"]


def test_a_changed_effect_is_undone_before_its_replacement_runs_and_so_is_what_was_made_of_it(ledger: str) -> None:
    run = booked(ledger)
    edit(run, 1, size=2)
    advance_to_rest(run)
    assert open_gate(run).title == "Book for 20?"
    assert lines(ledger, words=1) == ["book", "pay", "tell"]
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1)[3:] == ["refund", "unbook", "book", "pay", "tell"]
    assert fates(run)[:3] == [("book", "undone"), ("pay", "undone"), ("tell", "kept")]


def test_what_a_rewind_leaves_behind_is_adopted_where_people_agree_to_the_same(ledger: str) -> None:
    run = booked(ledger)
    rewind(run, before(run, "plan"))
    assert advance_to_rest(run).status == "completed", "the gate shows the same and all that it allowed is done"
    assert lines(ledger, words=1) == ["book", "pay", "tell"]
    assert fates(run) == [("book", "done"), ("pay", "done"), ("tell", "done")]


def test_sent_back_to_an_effect_it_is_undone_and_done_again_after_people_agreed(ledger: str) -> None:
    run = booked(ledger)
    rewind(run, before(run, "pay"))
    advance_to_rest(run)
    assert open_gate(run).step == "review", "a permission is used up once"
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1)[3:] == ["refund", "pay", "tell"]
    assert [(row, status) for row, status in fates(run) if row == "pay"] == [("pay", "undone"), ("pay", "done")]


def test_sending_back_to_what_cannot_be_undone_needs_a_confirmation(ledger: str) -> None:
    run = booked(ledger)
    with pytest.raises(NeedsConfirmation, match="tell"):
        rewind(run, before(run, "tell"))
    run.refresh_from_db()
    assert run.status == "completed"
    rewind(run, before(run, "tell"), confirm=True)
    advance_to_rest(run)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1)[3:] == ["tell"]
    assert [status for step, status in fates(run) if step == "tell"] == ["kept", "done"]


def test_a_rejection_that_stops_the_run_undoes_what_it_had_left_behind(ledger: str) -> None:
    run = booked(ledger)
    edit(run, 1, size=2)
    advance_to_rest(run)
    decide(run, "reject", comment="no")
    run = advance_to_rest(run)
    assert (run.status, run.reason) == ("cancelled", "Rejected by Ann Okafor: no")
    assert lines(ledger, words=1)[3:] == ["refund", "unbook"]
    assert fates(run)[:3] == [("book", "undone"), ("pay", "undone"), ("tell", "kept")]


def test_undo_now_settles_while_the_gate_stays_open(ledger: str) -> None:
    run = booked(ledger)
    edit(run, 1, size=2)
    advance_to_rest(run)
    gate = open_gate(run)
    rewinds.settle_now(run, by=ann(run.team))
    run = advance_to_rest(run)
    assert (run.status, open_gate(run).pk, lines(ledger, words=1)[3:]) == ("waiting", gate.pk, ["refund", "unbook"])
    decide(run)
    assert advance_to_rest(run).status == "completed"
    with pytest.raises(RewindRefused, match="no effects behind"):
        rewinds.settle_now(run, by=ann(run.team))


def test_an_undo_that_fails_asks_a_person_who_may_have_it_tried_again(ledger: str, tmp_path: Path) -> None:
    flag = tmp_path / "undo"
    run = booked(ledger, undo_flag=str(flag))
    flag.touch()
    edit(run, 1, size=2)
    advance_to_rest(run)
    decide(run)
    advance_to_rest(run)
    gate = open_gate(run)
    assert (gate.kind, gate.step) == ("recovery", "pay")
    assert [choice["id"] for choice in gate.standing().card.question["choices"]] == ["undo_again", "undone", "keep"]  # type: ignore[index]
    answer(run, "undo_again")
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1)[3:] == ["refund", "unbook", "book", "pay", "tell"]
    assert [status for step, status in fates(run) if step == "undo of pay"] == ["failed", "done"]


@pytest.mark.parametrize(("choice", "fate"), [("undone", "undone"), ("keep", "kept")])
def test_a_person_may_take_an_effect_back_by_hand_or_leave_it(
    ledger: str, tmp_path: Path, choice: str, fate: str
) -> None:
    flag = tmp_path / "undo"
    run = booked(ledger, undo_flag=str(flag))
    flag.touch()
    edit(run, 1, size=2)
    advance_to_rest(run)
    decide(run)
    advance_to_rest(run)
    answer(run, choice)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1)[3:] == ["unbook", "book", "pay", "tell"]
    assert fates(run)[1] == ("pay", fate)


def test_what_became_of_an_abandoned_effect_is_asked_before_another_takes_its_place(
    ledger: str, tmp_path: Path
) -> None:
    flag = tmp_path / "cut"
    flag.touch()
    run = advance_to_rest(make_run("booking", ledger=ledger, flag=str(flag)))
    decide(run)
    advance_to_rest(run)
    assert open_gate(run).step == "pay"
    edit(run, 1, size=2)
    advance_to_rest(run)
    decide(run)
    advance_to_rest(run)
    assert [choice["id"] for choice in open_gate(run).standing().card.question["choices"]] == [  # type: ignore[index]
        "was_done", "was_not_done", "left_open",
    ]  # fmt: skip
    answer(run, "was_done", {"charge": "charge 77"})
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=3)[2:4] == ["refund charge 77", lines(ledger, words=3)[3]]
    assert lines(ledger, words=1)[3:] == ["unbook", "book", "pay", "tell"]


def test_a_run_goes_on_from_where_it_was_sent_and_its_gate_is_withdrawn(ledger: str) -> None:
    run = advance_to_rest(make_run("booking", ledger=ledger))
    gate = open_gate(run)
    rewind(run, before(run, "plan"), feedback="cheaper")
    gate.refresh_from_db()
    assert (gate.status, gate.outcome.words) == ("withdrawn", "The run was rewound to checkpoint 1.")
    advance_to_rest(run)
    assert open_gate(run).title == "Book for 9?"
    assert after(run, "plan") == 4
    assert advance(run).status == "waiting"


def test_the_attempts_that_an_undo_took_are_not_those_of_the_effect_that_takes_its_place(
    ledger: str, tmp_path: Path
) -> None:
    """An effect with no attempts to spare was given up as one that kills its workers."""
    flag = tmp_path / "cut"
    run = advance_to_rest(make_run("once", ledger=ledger, what="one", flag=str(flag)))
    flag.touch()
    edit(run, 1, what="two")
    advance_to_rest(run)
    assert not flag.exists()
    assert (run.status, lines(ledger, words=1)) == ("completed", ["buy", "sell", "buy"])


def test_an_answer_is_about_the_effect_that_was_asked_about(ledger: str, tmp_path: Path) -> None:
    """What was said of one payment's undo was recorded of another's, whose undo was begun later."""
    flag = tmp_path / "flag"
    run = advance_to_rest(make_run("refunder", ledger=ledger, people=["A", "B"], flag=str(flag)))
    flag.write_text("cut")
    edit(run, 1, people=["B"])
    advance_to_rest(run)
    assert fates(run)[2:] == [("undo of pay", "unknown")]
    flag.write_text("refused")
    edit(run, 1, people=[])
    advance_to_rest(run)
    assert fates(run)[3:] == [("undo of pay", "failed")]
    assert open_gate(run).standing().card.summary == "refused: 422", "what cannot be stored left out"
    answer(run, "keep")
    advance_to_rest(run)
    answer(run, "undone")
    assert advance_to_rest(run).status == "completed"
    assert fates(run)[:2] == [("pay", "undone"), ("pay", "kept")]


def test_a_question_about_what_was_left_behind_does_not_hide_where_the_run_was_sent(
    ledger: str, tmp_path: Path
) -> None:
    """The step that a person had sent the run back to was reused instead."""
    flag = tmp_path / "undo"
    run = booked(ledger, undo_flag=str(flag))
    flag.touch()
    rewind(run, before(run, "plan"))
    rewinds.settle_now(run, by=ann(run.team))
    advance(run)
    seq = run.seq
    answer(run, "keep")
    advance_to_rest(run)
    assert ("step", "plan") in since(run, seq)


def test_a_run_that_settles_before_it_is_cancelled_was_cancelled_by_whoever_said_so(ledger: str) -> None:
    run = booked(ledger)
    edit(run, 1, size=2)
    advance_to_rest(run)
    person = ann(run.team)
    assert cancel.cancel(run, by=person, reason="no need")
    run = advance_to_rest(run)
    assert (run.status, lines(ledger, words=1)[3:]) == ("cancelled", ["refund", "unbook"])
    assert Event.objects.get(run_id=run.pk, kind="run.cancelled").actor == f"user:{person.pk}"
