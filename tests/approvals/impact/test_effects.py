"""Effects: what is adopted, done anew, undone and cannot be undone."""

from __future__ import annotations

from typing import Any

from approvals.impact import Impact, impact
from checkpoints.runs.plans import PlanSpec

from .model import Engine
from .small_plans import (
    agree,
    approve,
    back,
    edit,
    effect,
    engine,
    fork,
    gate,
    gives,
    plan,
    rewind,
    said,
    step,
    stop,
    waiting,
)

REFUND = plan(
    step("find", "name", "order", reads_world=True),
    step("propose", "order feedback", "offer"),
    gate("review", "offer", allows=("pay", "reply"), edits=("offer",), feedback="feedback", asks=True),
    effect("pay", "offer", "payment", guarded=True),
    effect("reply", "offer payment", "sent", guarded=True, irreversible=True),
)


def refunds(**more: Any) -> tuple[Engine, int]:
    made = engine(REFUND, {
        "find": lambda engine, name: ({"order": name}, None),
        "propose": lambda engine, order, feedback: ({"offer": f"{order} {len(feedback or [])}"}, None),
        "pay": lambda engine, offer: ({"payment": f"paid {offer}"}, None),
        "reply": lambda engine, offer, payment: ({"sent": 1}, None),
        **more,
    })  # fmt: skip
    return made, made.start(name="A", feedback=[])


def finished() -> tuple[Engine, int]:
    made, run = refunds()
    agree(made, run)
    assert made.runs[run].status == "completed"
    return made, run


def test_a_first_yes_runs_the_effects_and_names_what_is_final() -> None:
    made, run = refunds()
    told = approve(made, waiting(made, run))
    assert said(told) == ["will pay", "will reply"]
    assert [row.step for row in told.final] == ["reply"]
    assert told.ends
    assert [row.step for row in told.kept] == ["find", "propose"]


def test_a_rewound_refund_names_what_may_come_of_its_payment() -> None:
    made, run = finished()
    told = rewind(made, run, "find")
    assert said(told) == [
        "will find", "may propose on find", "may ask review on find", "may pay on find, review",
        "may reply on find, review", "cannot reply on find, review", "may_undone pay on find, review",
    ]  # fmt: skip


def test_an_edited_order_leaves_the_payment_to_be_undone_unless_people_put_it_back() -> None:
    made, run = finished()
    assert said(edit(made, run, "propose", order="B")) == [
        "will propose", "may ask review on propose", "may pay on propose, review", "may reply on propose, review",
        "cannot reply on propose, review", "may_undone pay on propose, review",
    ]  # fmt: skip


def test_what_was_done_with_this_very_input_is_adopted_and_asks_nobody() -> None:
    made, run = finished()
    told = edit(made, run, "propose", other=1)
    assert said(told) == ["stands propose", "stands review", "stands pay", "stands reply"]
    assert told.ends
    assert [row.effect for row in told.ahead if row.kind == "effect"] == [1, 2]


def test_another_approved_amount_is_paid_and_the_first_payment_undone() -> None:
    made, run = finished()
    made.move(run, at_offer(made, run), "edit", {"offer": "other"})
    told = approve(made, waiting(made, run))
    assert said(told) == ["will pay", "will reply", "cannot reply", "undone pay"]


def test_an_edit_back_to_what_was_paid_takes_the_payment_that_was_made() -> None:
    made, run = finished()
    made.move(run, at_offer(made, run), "edit", {"offer": "other"})
    asking = waiting(made, run)
    assert said(approve(made, asking, offer="A 0")) == ["stands pay", "stands reply"]


def at_offer(made: Engine, run: int) -> str:
    return next(point.id for point in made.points.values() if point.run == run and point.next_step == "review")


def test_a_rejection_that_stops_undoes_what_was_left_behind_and_leaves_the_path() -> None:
    made, run = finished()
    made.move(run, at_offer(made, run), "edit", {"offer": "other"})
    told = stop(made, waiting(made, run))
    assert said(told) == ["cannot reply", "undone pay"]
    assert told.ends


def test_sent_back_with_feedback_the_agent_proposes_anew_and_people_are_asked() -> None:
    made, run = refunds()
    told = back(made, waiting(made, run), "propose")
    assert said(told) == ["will propose", "asks review"]
    assert told.asks == "review"
    assert [row.step for row in told.kept] == ["find"]


def test_sent_back_to_an_effect_it_is_undone_and_done_again() -> None:
    made = engine(plan(effect("book", "room", "key"), step("tell", "key", "text")), {"book": gives(key=1)})
    run = made.start(room=1)
    made.drive(run)
    told = rewind(made, run, "book")
    assert said(told) == ["will book", "may tell on book", "undone book"]
    assert [row.again for row in told.ahead] == [True, False, True]
    assert told.repeated == ()


def test_sent_back_to_what_cannot_be_undone_it_is_named_and_needs_a_confirmation() -> None:
    made = engine(plan(effect("mail", "text", "sent", irreversible=True)), {})
    run = made.start(text=1)
    made.drive(run)
    told = rewind(made, run, "mail")
    assert said(told) == ["will mail", "cannot mail"]
    assert [row.step for row in told.repeated] == ["mail"]


def test_an_effect_whose_permission_was_used_goes_back_to_its_gate() -> None:
    made, run = finished()
    told = rewind(made, run, "pay")
    assert said(told) == ["may pay on review", "asks review", "cannot reply on review", "undone pay"]


ITEMS = plan(
    step("next", "items at", "item at", jumps=("done",)),
    effect("pay", "item", "paid", jumps=("next",)),
    step("done", "paid", "report"),
)


def payments(*items: str) -> tuple[Engine, int]:
    def following(engine: Engine, items: list[str], at: int) -> Any:
        return ({}, "done") if at >= len(items) else ({"item": items[at], "at": at + 1}, None)

    made = engine(ITEMS, {"next": following, "pay": lambda engine, item: ({"paid": item}, "next")})
    run = made.start(items=list(items), at=0)
    made.drive(run)
    return made, run


def test_of_four_payments_in_a_loop_only_the_one_that_is_left_out_is_undone() -> None:
    """A counter of visits made a second payment of the two equal ones, and another of the last."""
    made, run = payments("A", "B", "B", "C")
    first = next(iter(made.points))
    told = edited(made, run, first, {"items": ["B", "B", "C"]})
    assert said(told) == ["will next", "may next on next", "may pay on next", "may done on next", *OPEN]
    made.move(run, first, "edit", {"items": ["B", "B", "C"]})
    made.drive(run)
    assert [row.status for row in made.rows] == ["undone", "done", "done", "done"]


def test_once_the_loop_was_walked_without_it_each_payment_is_told_by_itself() -> None:
    made, run = payments("A", "B", "B", "C")
    first = next(iter(made.points))
    made.move(run, first, "edit", {"items": ["B", "B", "C"]})
    made.drive(run)
    told = edited(made, run, first, {"items": ["A", "B", "B", "C"]})
    assert said(told) == ["stands next", "will pay", "may next on pay", "may pay on pay", "may done on pay", *LEFT]
    told = edited(made, run, first, {"items": ["B", "B", "C"]})
    assert said(told) == ["stands next", "stands pay"] * 3 + ["stands next", "stands done"]
    assert [row.effect for row in told.ahead if row.kind == "effect"] == [2, 3, 4]


OPEN, LEFT = ["may_undone pay on next"] * 4, ["may_undone pay on pay"] * 3


def test_of_four_payments_taken_from_a_list_the_walk_knows_each() -> None:
    """Where what the loop reads is not touched, each payment is told by itself."""
    steps = plan(
        step("first", "order", "item"), effect("pay_first", "item", "one"), step("second", "", "item"),
        effect("pay_second", "item", "two"),
    )  # fmt: skip
    made = engine(steps, {"first": lambda engine, order: ({"item": order}, None), "second": gives(item="B")})
    run = made.start(order="A")
    made.drive(run)
    first = next(iter(made.points))
    assert said(edited(made, run, first, {"order": "X"})) == [
        "will first", "may pay_first on first", "stands second", "stands pay_second", "may_undone pay_first on first",
    ]  # fmt: skip


def edited(made: Engine, run: int, at: str, writes: dict[str, Any]) -> Impact:
    return impact(made.history(run), made.target_of(run, at, "edit", writes))


SEND: PlanSpec = plan(effect("book", "room", "key"), effect("mail", "key", "sent"), step("end", "room"))


def test_what_was_made_of_an_undone_effect_may_go_with_it() -> None:
    made = engine(SEND, {"book": gives(key=1)})
    run = made.start(room=1)
    made.drive(run)
    first = next(iter(made.points))
    assert said(edited(made, run, first, {"room": 2})) == [
        "will book", "may mail on book", "will end", "may_undone mail on book", "undone book",
    ]  # fmt: skip


def test_a_fork_asks_before_it_takes_over_what_its_origin_has_done() -> None:
    made = engine(SEND, {"book": gives(key=1)})
    run = made.start(room=1)
    made.drive(run)
    told = fork(made, run, "book")
    assert said(told) == ["may ask book on book"]
    assert (told.asks, told.ahead[0].why, told.ahead[0].effect, told.ahead[0].origin) == ("book", "takeover", 1, run)
    assert said(fork(made, run, "book", room=2)) == ["will book", "may ask mail on book", "may end on book"]


def test_a_fork_leaves_its_origins_effects_alone() -> None:
    made = engine(SEND, {"book": gives(key=1)})
    run = made.start(room=1)
    made.drive(run)
    told = fork(made, run, "book", room=2)
    assert (told.undone, told.may_undone, told.cannot) == ((), (), ())


def test_an_effect_of_which_nobody_knows_what_became_is_asked_about() -> None:
    made = engine(SEND, {"book": gives(key=1)})
    run = made.start(room=1)
    made.drive(run)
    made.rows[0].status = "unknown"
    first = next(iter(made.points))
    told = edited(made, run, first, {})
    assert said(told)[0] == "may ask book on book"
    assert "may_undone book on book" in said(told)


def doubted(**said: Any) -> tuple[Engine, int, str]:
    """A booking of which something is not known; the run, and its first checkpoint."""
    made = engine(SEND, {"book": gives(key=1)})
    run = made.start(room=1)
    made.drive(run)
    for name, value in said.items():
        setattr(made.rows[0], name, value)
    return made, run, next(iter(made.points))


def test_what_was_left_open_is_asked_about_where_the_run_comes_to_it() -> None:
    """It was told to stand, as if it had been done."""
    made, run, first = doubted(status="kept", left_open=True)
    told = edited(made, run, first, {})
    assert said(told)[0] == "may ask book on book"
    assert not any(row.kind == "effect" for row in told.stands)
    assert said(rewind(made, run, "book"))[0] == "may ask book on book"


def test_what_was_left_open_stays_so_where_the_run_does_not_come_to_it() -> None:
    made, run, first = doubted(status="kept", left_open=True)
    assert said(edited(made, run, first, {"room": 2})) == ["will book", "may mail on book", "will end", LEFT_MAIL]


def test_what_was_left_open_may_be_asked_about_by_a_step_whose_input_is_not_known() -> None:
    steps = plan(step("room", "size", "room"), *SEND.steps)
    made = engine(steps, {"room": gives(room=1), "book": gives(key=1)})
    run = made.start(size=1)
    made.drive(run)
    made.rows[0].status, made.rows[0].left_open = "kept", True
    told = edited(made, run, next(iter(made.points)), {"size": 2})
    assert said(told)[:2] == ["will room", "may ask book on room"]


LEFT_MAIL = "may_undone mail on book"


def test_what_was_ordered_again_stands_where_the_run_goes_back_to_after_it() -> None:
    """It was told to stand and to be undone, both at once."""
    made, run, _ = doubted(again=True)
    told = rewind(made, run, "mail")
    assert said(told) == ["will mail", "stands end", "undone mail"]
    assert [(row.step, str(row.verdict)) for row in told.kept] == [("book", "stands")]


def test_an_undo_that_was_begun_may_have_to_be_asked_about() -> None:
    made, run, first = doubted(going=True)
    told = edited(made, run, first, {})
    assert said(told)[0] == "may ask book on book"
    assert "may_undone book on book" in said(told)


def test_before_the_run_ends_people_are_asked_about_what_it_left_in_doubt() -> None:
    """The run was told to end, and it asked."""
    made = engine(plan(step("go", "x", ends=True, jumps=("book",)), effect("book", "x", "key")), {
        "go": lambda engine, x: ({}, "book" if x == 1 else ""), "book": gives(key=1),
    })  # fmt: skip
    run = made.start(x=1)
    made.drive(run)
    made.move(run, next(iter(made.points)), "edit", {"x": 2})
    made.drive(run)
    made.rows[0].status = "unknown"
    told = edited(made, run, next(iter(made.points)), {"x": 2})
    assert said(told) == ["stands go", "may ask book on book", "may_undone book on book"]
    assert (told.ends, told.may, [row.step for row in told.asking]) == (False, (), ["book"])


def test_what_a_fork_stands_on_is_left_alone() -> None:
    """It was told to be undone, and the runner keeps what another run has taken over."""
    made, run, first = doubted(shared=True)
    assert "cannot book" in said(edited(made, run, first, {"room": 2}))


def test_a_fork_asks_also_of_what_its_origin_may_have_done() -> None:
    made, run, _ = doubted(status="unknown")
    assert said(fork(made, run, "book"))[0] == "may ask book on book"


def test_what_was_said_of_one_execution_is_no_word_about_the_next() -> None:
    """A fork that was told to book once more itself was told to book the second time too, and asked."""
    steps = plan(effect("book", "room", "key"), step("more", "", jumps=("book",), ends=True))
    made = engine(steps, {"more": lambda engine: ({}, "book" if len(made_rows(engine)) < 2 else "")})
    run = made.start(room=1)
    made.drive(run)
    other = made.fork(next(iter(made.points)), {})
    made.decide(waiting(made, other), "answered", choice="do_again")
    made.drive(other)
    history = made.history(other)
    assert history.head.own == frozenset()


def made_rows(engine: Engine) -> list[Any]:
    return [row for row in engine.rows if row.run == 1]
