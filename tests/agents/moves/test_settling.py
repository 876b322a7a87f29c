"""What a move leaves behind and what it reuses: effects are adopted, undone before what takes their place, or kept;
after an edit only what the change touches runs again; an order holds until it is carried out or dropped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.errors import NeedsConfirmation, RewindRefused
from agents.moves import cancel
from agents.moves import rewind as rewinds
from approvals.consequences.gate import GateImpacts
from checkpoints.models import Event, Hold, Run
from tests.agents.moves.moved_runs import after, before, choices, edit, fates, lines, rewind, since
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, answer, decide, make_run, open_gate, state, trail


def booked(ledger: str, **input: Any) -> Run:
    """A finished booking."""
    run = advance_to_rest(make_run("booking", ledger=ledger, **input))
    decide(run)
    assert advance_to_rest(run).status == "completed"
    return run


def test_of_a_loop_a_payment_that_is_removed_is_undone_and_one_that_is_added_made_and_no_other(ledger: str) -> None:
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
    edit(run, 1, people=["X", "B", "B", "C"])
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger)[5:] == ["pay X"]


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


def test_what_a_rewind_leaves_is_adopted_and_to_send_back_to_what_cannot_be_undone_is_confirmed(ledger: str) -> None:
    run = booked(ledger)
    rewind(run, before(run, "plan"))
    assert advance_to_rest(run).status == "completed", "the gate shows the same and all that it allowed is done"
    assert lines(ledger, words=1) == ["book", "pay", "tell"]
    assert fates(run) == [("book", "done"), ("pay", "done"), ("tell", "done")]
    to = before(run, "tell")
    with pytest.raises(NeedsConfirmation, match="tell"):
        rewind(run, to)
    run.refresh_from_db()
    assert run.status == "completed"
    rewind(run, to, confirm=True)
    advance_to_rest(run)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1)[3:] == ["tell"]
    assert [status for step, status in fates(run) if step == "tell"] == ["kept", "done"]


def test_sent_back_to_an_effect_it_is_undone_and_done_again_after_people_agreed(ledger: str) -> None:
    """Beforehand the booking was told to run, or to stand, once more."""
    run = booked(ledger)
    rewind(run, before(run, "pay"))
    advance_to_rest(run)
    gate = open_gate(run)
    assert (gate.step, trail(run)[-1]) == ("review", ("reopen", "pay")), "a permission is used up once"
    told = GateImpacts(gate, gate.standing().card, gate.standing().state_patch).approve()
    assert ([row.step for row in told.will], [row.step for row in told.undone]) == (["pay"], ["pay"])
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1)[3:] == ["refund", "pay", "tell"]
    assert fates(run)[:3] == [("book", "done"), ("pay", "undone"), ("tell", "kept")]


@pytest.mark.parametrize(
    ("rejected", "reason"), [(True, "Rejected by Ann Okafor: no"), (False, "no")], ids=["rejected", "cancelled"]
)
def test_a_run_that_is_stopped_undoes_what_it_left_behind_and_was_stopped_by_whoever_said_so(
    ledger: str, rejected: bool, reason: str
) -> None:
    run = booked(ledger)
    edit(run, 1, size=2)
    advance_to_rest(run)
    person = ann(run.team)
    if rejected:
        decide(run, "reject", comment="no", by=person)
    else:
        assert cancel.cancel(run, by=person, reason="no")
    run = advance_to_rest(run)
    assert (run.status, run.reason) == ("cancelled", reason)
    assert lines(ledger, words=1)[3:] == ["refund", "unbook"]
    assert fates(run)[:3] == [("book", "undone"), ("pay", "undone"), ("tell", "kept")]
    assert rejected or Event.objects.get(run_id=run.pk, kind="run.cancelled").actor == f"user:{person.pk}"


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


@pytest.mark.parametrize(
    ("choice", "fate", "undo"),
    [
        ("undo_again", "undone", ["failed", "done"]),
        ("undone", "undone", ["failed"]),
        pytest.param("keep", "kept", ["failed"], marks=pytest.mark.long),
    ],
)
def test_an_undo_that_fails_asks_a_person_who_may_have_it_tried_again_do_it_by_hand_or_leave_it(
    ledger: str, tmp_path: Path, choice: str, fate: str, undo: list[str]
) -> None:
    flag = tmp_path / "undo"
    run = booked(ledger, undo_flag=str(flag))
    flag.touch()
    edit(run, 1, size=2)
    advance_to_rest(run)
    decide(run)
    advance_to_rest(run)
    gate = open_gate(run)
    assert (gate.kind, gate.step) == ("recovery", "pay")
    assert choices(gate) == ["undo_again", "undone", "keep"]
    answer(run, choice)
    assert advance_to_rest(run).status == "completed"
    refunded = ["refund"] if choice == "undo_again" else []
    assert lines(ledger, words=1)[3:] == [*refunded, "unbook", "book", "pay", "tell"]
    assert fates(run)[1] == ("pay", fate)
    assert [status for step, status in fates(run) if step == "undo of pay"] == undo


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
    assert choices(open_gate(run)) == ["was_done", "was_not_done", "left_open"]
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


def test_only_the_steps_that_read_the_change_run_again_and_an_equal_output_stops_the_ripple(ledger: str) -> None:
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
    edit(run, 1, a=2, b=5)
    advance_to_rest(run)
    assert lines(ledger)[8:] == ["twice 2", "judge 4", "look"]
    edit(run, after(run, "twice"), b=1)
    advance_to_rest(run)
    assert lines(ledger)[11:] == ["look"], "back to what it was before an edit, all of it is reused"


def test_what_a_rewind_is_sent_to_always_runs_and_a_list_that_is_reused_is_appended_to_again(ledger: str) -> None:
    run = advance_to_rest(make_run("chain", ledger=ledger))
    seq = run.seq
    rewind(run, before(run, "twice"))
    advance_to_rest(run)
    assert lines(ledger)[5:] == ["twice 1", "look"]
    assert since(run, seq)[:3] == [("rewind", "twice"), ("step", "twice"), ("reused", "aside")]
    edit(run, 1, log=["from a person"])
    advance_to_rest(run)
    assert lines(ledger)[7:] == ["look"]
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


def ordered_anew(ledger: str, **input: Any) -> tuple[Run, int]:
    """A booking that was paid, and sent back to pay once more: it asks; and where it stood when it had paid."""
    run = booked(ledger, **input)
    paid = after(run, "pay")
    rewind(run, before(run, "pay"))
    assert advance_to_rest(run).status == "waiting"
    return run, paid


def stays(run: Run, to: int) -> None:
    """The run is not moved to this checkpoint, and nothing of it is touched."""
    was = (run.status, run.seq, run.token, fates(run))
    with pytest.raises(RewindRefused, match="pay is done, but it was undone since"):
        rewind(run, to, confirm=True)
    run.refresh_from_db()
    assert (run.status, run.seq, run.token, fates(run)) == was


def test_what_was_undone_and_done_anew_is_not_gone_back_to_but_the_one_that_stands_is(ledger: str) -> None:
    """The newest charge stood, so the run went on with a state that named the one that had been refunded."""
    run, paid = ordered_anew(ledger)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1) == ["book", "pay", "tell", "refund", "pay", "tell"]
    stays(run, paid)
    charge = state(run)["charge"]
    rewind(run, after(run, "pay"), confirm=True)
    advance_to_rest(run)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1)[6:] == ["tell"]
    assert state(run)["charge"] == charge


def test_what_was_undone_is_not_gone_back_to_while_the_one_done_anew_is_in_doubt(ledger: str, tmp_path: Path) -> None:
    """The run completed with the refunded charge, and nobody was asked about the other any more."""
    flag = tmp_path / "cut"
    run, paid = ordered_anew(ledger, flag=str(flag))
    flag.touch()
    decide(run)
    advance_to_rest(run)
    stays(run, paid)
    assert open_gate(run).title.startswith("Did “Pay” happen?")


def ordered_again(ledger: str, *, cancelled: bool) -> Run:
    """A run that is to tell for a second time what cannot be undone, or was cancelled before a worker came to that."""
    run = advance_to_rest(make_run("final", ledger=ledger))
    rewind(run, before(run, "tell"), confirm=True)
    if cancelled:
        cancel.cancel(run, by=ann(run.team), reason="leave it")
        assert advance_to_rest(run).status == "cancelled"
    return run


@pytest.mark.parametrize("cancelled", [True, False])
def test_an_order_that_was_cancelled_or_left_for_another_is_not_carried_out_later(ledger: str, cancelled: bool) -> None:
    """Sent back to a step before it, the run did once more what cannot be undone, and nobody had confirmed that."""
    run = ordered_again(ledger, cancelled=cancelled)
    rewind(run, 1)
    assert advance_to_rest(run).status == "completed"
    assert (lines(ledger), fates(run)) == (["tell 1"], [("tell", "done")])


def test_an_order_that_was_cancelled_has_to_be_given_and_confirmed_anew(ledger: str) -> None:
    run = ordered_again(ledger, cancelled=True)
    with pytest.raises(NeedsConfirmation):
        rewind(run, before(run, "tell"))
    told = Event.objects.filter(run_id=run.pk, kind="effect.done")
    known = told.count()
    rewind(run, before(run, "tell"), confirm=True)
    assert told.order_by("pk")[known].actor_name == "Ann Okafor", "what was left counts again, by whose word"
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["tell 1", "tell 1"]
