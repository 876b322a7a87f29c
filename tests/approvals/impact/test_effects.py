"""Effects: what is adopted, done anew, undone and cannot be undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agents.effects import takeover
from checkpoints.runs.plans import PlanSpec

from .recorded import Recorded
from .small_plans import approve, back, edit, effect, fork, gate, plan, rewind, said, step, stop

REFUND = plan(
    step("find", "name", "order", reads_world=True),
    step("propose", "order feedback", "offer"),
    gate("review", "offer", allows=("pay", "reply"), edits=("offer",), feedback="feedback", asks=True),
    effect("pay", "offer", "payment", guarded=True),
    effect("reply", "offer payment", "sent", guarded=True, irreversible=True),
)


def proposed() -> Recorded:
    return Recorded(REFUND, name="A", feedback=[]).ran("find", {"order": "A"}).ran("propose", {"offer": "A 0"})


def finished() -> Recorded:
    return proposed().agreed("review").ran("pay", {"payment": "paid A 0"}).ran("reply", {"sent": 1})


def edited() -> Recorded:
    """It goes on with another offer, and asks about that."""
    return finished().moved("edit", "review", offer="other").asked("review")


def test_a_first_yes_runs_the_effects_and_names_what_is_final() -> None:
    told = approve(proposed().asked("review"))
    assert said(told) == ["will pay", "will reply"]
    assert [row.step for row in told.final] == ["reply"]
    assert told.ends
    assert [row.step for row in told.kept] == ["find", "propose"]


def test_a_rewound_refund_names_what_may_come_of_its_payment() -> None:
    told = rewind(finished(), "find")
    assert said(told) == [
        "will find", "may propose on find", "may ask review on find", "may pay on find, review",
        "may reply on find, review", "cannot reply on find, review", "may_undone pay on find, review",
    ]  # fmt: skip


def test_an_edited_order_leaves_the_payment_to_be_undone_unless_people_put_it_back() -> None:
    assert said(edit(finished(), "propose", order="B")) == [
        "will propose", "may ask review on propose", "may pay on propose, review", "may reply on propose, review",
        "cannot reply on propose, review", "may_undone pay on propose, review",
    ]  # fmt: skip


def test_what_was_done_with_this_very_input_is_adopted_and_asks_nobody() -> None:
    told = edit(finished(), "propose", other=1)
    assert said(told) == ["stands propose", "stands review", "stands pay", "stands reply"]
    assert told.ends
    assert [row.effect for row in told.ahead if row.kind == "effect"] == [1, 2]


def test_another_approved_amount_is_paid_and_the_first_payment_undone() -> None:
    assert said(approve(edited())) == ["will pay", "will reply", "cannot reply", "undone pay"]


def test_an_edit_back_to_what_was_paid_takes_the_payment_that_was_made() -> None:
    assert said(approve(edited(), offer="A 0")) == ["stands pay", "stands reply"]


def test_a_rejection_that_stops_undoes_what_was_left_behind_and_leaves_the_path() -> None:
    told = stop(edited())
    assert said(told) == ["cannot reply", "undone pay"]
    assert told.ends


def test_sent_back_with_feedback_the_agent_proposes_anew_and_people_are_asked() -> None:
    told = back(proposed().asked("review"), "propose")
    assert said(told) == ["will propose", "asks review"]
    assert told.asks == "review"
    assert [row.step for row in told.kept] == ["find"]


def test_sent_back_to_an_effect_it_is_undone_and_done_again() -> None:
    made = Recorded(plan(effect("book", "room", "key"), step("tell", "key", "text")), room=1)
    told = rewind(made.ran("book", {"key": 1}).ran("tell"), "book")
    assert said(told) == ["will book", "may tell on book", "undone book"]
    assert [row.again for row in told.ahead] == [True, False, True]
    assert told.repeated == ()


def test_sent_back_to_what_cannot_be_undone_it_is_named_and_needs_a_confirmation() -> None:
    made = Recorded(plan(effect("mail", "text", "sent", irreversible=True)), text=1).ran("mail")
    told = rewind(made, "mail")
    assert said(told) == ["will mail", "cannot mail"]
    assert [row.step for row in told.repeated] == ["mail"]


def test_an_effect_whose_permission_was_used_goes_back_to_its_gate() -> None:
    told = rewind(finished(), "pay")
    assert said(told) == ["may pay on review", "asks review", "cannot reply on review", "undone pay"]


ITEMS = plan(
    step("next", "items at", "item at", jumps=("done",)),
    effect("pay", "item", "paid", jumps=("next",)),
    step("done", "paid", "report"),
)


def payments(*items: str) -> Recorded:
    return _paid(Recorded(ITEMS, items=list(items), at=0), items, [])


def _paid(made: Recorded, items: Sequence[str], before: Sequence[str]) -> Recorded:
    """All of the items, those of `before` by what was paid then."""
    left = list(before)
    for at, item in enumerate(items, 1):
        made.ran("next", {"item": item, "at": at})
        took = made.reused if item in left else made.ran
        took("pay", {"paid": item}, "next")
        left.remove(item) if item in left else None
    return made.ran("next", {}, "done").ran("done")


def test_of_four_payments_in_a_loop_only_the_one_that_is_left_out_is_undone() -> None:
    """A counter of visits made a second payment of the two equal ones, and another of the last."""
    told = edit(payments("A", "B", "B", "C"), "", items=["B", "B", "C"])
    assert said(told) == ["will next", "may next on next", "may pay on next", "may done on next", *OPEN]


def test_once_the_loop_was_walked_without_it_each_payment_is_told_by_itself() -> None:
    first, rest = ("A", "B", "B", "C"), ["B", "B", "C"]
    made = payments(*first)
    _paid(made.moved("edit", "", items=rest), rest, first).effects[0] = replace(made.effects[0], status="undone")
    told = edit(made, "", items=["A", "B", "B", "C"])
    assert said(told) == ["stands next", "will pay", "may next on pay", "may pay on pay", "may done on pay", *LEFT]
    told = edit(made, "", items=rest)
    assert said(told) == ["stands next", "stands pay"] * 3 + ["stands next", "stands done"]
    assert [row.effect for row in told.ahead if row.kind == "effect"] == [2, 3, 4]


OPEN, LEFT = ["may_undone pay on next"] * 4, ["may_undone pay on pay"] * 3


def test_of_four_payments_taken_from_a_list_the_walk_knows_each() -> None:
    """Where what the loop reads is not touched, each payment is told by itself."""
    steps = plan(
        step("first", "order", "item"), effect("pay_first", "item", "one"), step("second", "", "item"),
        effect("pay_second", "item", "two"),
    )  # fmt: skip
    made = Recorded(steps, order="A").ran("first", {"item": "A"}).ran("pay_first").ran("second", {"item": "B"})
    assert said(edit(made.ran("pay_second"), "", order="X")) == [
        "will first", "may pay_first on first", "stands second", "stands pay_second", "may_undone pay_first on first",
    ]  # fmt: skip


SEND: PlanSpec = plan(effect("book", "room", "key"), effect("mail", "key", "sent"), step("end", "room"))


def booked() -> Recorded:
    return Recorded(SEND, room=1).ran("book", {"key": 1}).ran("mail").ran("end")


def test_what_was_made_of_an_undone_effect_may_go_with_it() -> None:
    assert said(edit(booked(), "", room=2)) == [
        "will book", "may mail on book", "will end", "may_undone mail on book", "undone book",
    ]  # fmt: skip


def test_a_fork_asks_before_it_takes_over_what_its_origin_has_done() -> None:
    told = fork(booked(), "book")
    assert said(told) == ["may ask book on book"]
    assert (told.asks, told.ahead[0].why, told.ahead[0].effect, told.ahead[0].origin) == ("book", "takeover", 1, 1)
    assert said(fork(booked(), "book", room=2)) == ["will book", "may ask mail on book", "may end on book"]


def test_a_fork_leaves_its_origins_effects_alone() -> None:
    told = fork(booked(), "book", room=2)
    assert (told.undone, told.may_undone, told.cannot) == ((), (), ())


def test_an_effect_of_which_nobody_knows_what_became_is_asked_about() -> None:
    told = edit(booked().changed("book", status="unknown"), "")
    assert said(told)[0] == "may ask book on book"
    assert "may_undone book on book" in said(told)


def test_what_was_left_open_is_asked_about_where_the_run_comes_to_it() -> None:
    """It was told to stand, as if it had been done."""
    made = booked().changed("book", status="kept", left_open=True)
    told = edit(made, "")
    assert said(told)[0] == "may ask book on book"
    assert not any(row.kind == "effect" for row in told.stands)
    assert said(rewind(made, "book"))[0] == "may ask book on book"


def test_what_was_left_open_stays_so_where_the_run_does_not_come_to_it() -> None:
    made = booked().changed("book", status="kept", left_open=True)
    assert said(edit(made, "", room=2)) == ["will book", "may mail on book", "will end", LEFT_MAIL]


def test_what_was_left_open_may_be_asked_about_by_a_step_whose_input_is_not_known() -> None:
    steps = plan(step("room", "size", "room"), *SEND.steps)
    made = Recorded(steps, size=1).ran("room", {"room": 1}).ran("book", {"key": 1}).ran("mail").ran("end")
    told = edit(made.changed("book", status="kept", left_open=True), "", size=2)
    assert said(told)[:2] == ["will room", "may ask book on room"]


LEFT_MAIL = "may_undone mail on book"


def test_what_was_ordered_again_stands_where_the_run_goes_back_to_after_it() -> None:
    """It was told to stand and to be undone, both at once."""
    told = rewind(booked().changed("book", again=True), "mail")
    assert said(told) == ["will mail", "stands end", "undone mail"]
    assert [(row.step, str(row.verdict)) for row in told.kept] == [("book", "stands")]


def test_what_was_begun_again_is_asked_about_where_the_run_goes_back_to_after_the_first_time() -> None:
    """The first time's result on the path counted for both, so that the run was told to end, and it asked."""
    told = rewind(booked().changed("book", status="kept").moved("rewind", "book").began("book"), "mail")
    assert "may_undone book on book" in said(told)
    assert "may ask book on book" in said(told)
    assert [row.step for row in told.kept] == ["book"]


def test_an_undo_that_was_begun_may_have_to_be_asked_about() -> None:
    told = edit(booked().changed("book", going=True), "")
    assert said(told)[0] == "may ask book on book"
    assert "may_undone book on book" in said(told)


def test_before_the_run_ends_people_are_asked_about_what_it_left_in_doubt() -> None:
    """The run was told to end, and it asked."""
    steps = plan(step("go", "x", ends=True, jumps=("book",)), effect("book", "x", "key"))
    made = Recorded(steps, x=1).ran("go", {}, "book").ran("book", {"key": 1}).moved("edit", "go", x=2).ran("go", {}, "")
    told = edit(made.changed("book", status="unknown"), "", x=2)
    assert said(told) == ["stands go", "may ask book on book", "may_undone book on book"]
    assert (told.ends, told.may, [row.step for row in told.asking]) == (False, (), ["book"])


def test_what_a_fork_stands_on_is_left_alone() -> None:
    """It was told to be undone, and the runner keeps what another run has taken over."""
    assert "cannot book" in said(edit(booked().changed("book", shared=True), "", room=2))


def test_a_fork_asks_also_of_what_its_origin_may_have_done() -> None:
    assert said(fork(booked().changed("book", status="unknown"), "book"))[0] == "may ask book on book"


def test_what_was_said_of_one_execution_is_no_word_about_the_next() -> None:
    """A fork that was told to book once more itself was told to book the second time too, and asked."""
    made = Recorded(plan(effect("book", "room", "key"), step("more", "", jumps=("book",), ends=True)), room=1)
    made.ran("book").ran("more", {}, "book").ran("book").ran("more", {}, "").forked("").recovered()
    said_at = {(made.head.parent, "book")}
    assert takeover.done_by_fork(made.path(made.head), said_at) == {"book"}
    assert takeover.done_by_fork(made.ran("book").path(made.head), said_at) == frozenset()
