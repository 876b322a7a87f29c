"""A gate that was opened again for the sake of an effect: a yes goes on with that effect, not with what follows."""

from __future__ import annotations

import pytest

from .model import Engine, Gate, Method
from .small_plans import agree, approve, effect, engine, gate, plan, said, step, stop, waiting

TRIP = plan(
    step("draft", "x", "offer"), gate("review", "offer", allows=("book", "pay"), edits=("offer", "note"), asks=True),
    effect("book", "offer", "room", guarded=True), step("count", "room", "sum"),
    effect("pay", "sum", "paid", guarded=True), step("end", "paid"),
)  # fmt: skip
METHODS: dict[str, Method] = {
    "draft": lambda engine, x: ({"offer": x}, None),
    "book": lambda engine, offer: ({"room": offer}, None),
    "count": lambda engine, room: ({"sum": room}, None),
}


def reopened() -> tuple[Engine, Gate]:
    """A finished trip that was sent back to its payment: the permission for that is used."""
    made = engine(TRIP, METHODS)
    run = made.start(x=1)
    agree(made, run)
    made.move(run, next(p.id for p in reversed(made.points.values()) if p.next_step == "pay"), "rewind", {})
    return made, waiting(made, run)


def test_a_yes_goes_on_with_the_effect_for_whose_sake_it_was_opened() -> None:
    """It was told as if the run went through all that follows the gate once more."""
    made, asking = reopened()
    told = approve(made, asking)
    assert said(told) == ["will pay", "may end on pay", "undone pay"]
    assert "book" in [row.step for row in told.kept]
    made.trace.clear()
    agree(made, asking.run)
    assert made.trace == [("undone", "pay"), ("ran", "pay"), ("reused", "end")]


def test_an_edit_of_what_nothing_since_has_read_goes_on_with_it_too() -> None:
    made, asking = reopened()
    assert said(approve(made, asking, note="n")) == ["will pay", "may end on pay", "undone pay"]


def test_an_edit_of_what_was_made_since_asks_again_and_takes_that_back() -> None:
    made, asking = reopened()
    told = approve(made, asking, offer=2)
    assert said(told) == ["asks review", "undone pay", "may_undone book on review"]
    assert [row.step for row in told.kept] == ["draft"]
    made.trace.clear()
    made.decide(asking, "edited", patch={"offer": 2})
    assert made.drive(asking.run) == "waiting"
    assert made.trace == [("asked", "review")]
    agree(made, asking.run)
    assert [row.status for row in made.rows if row.step == "book"] == ["undone", "done"]


def test_the_other_words_there_do_what_they_do_at_any_gate() -> None:
    made, asking = reopened()
    assert said(stop(made, asking)) == ["undone pay"]


@pytest.mark.parametrize("edited", [{}, {"offer": 2}])
def test_in_a_fork_the_gate_of_its_origin_is_where_an_edit_goes_back_to(edited: dict[str, int]) -> None:
    made = engine(TRIP, METHODS)
    run = made.start(x=1)
    agree(made, run)
    fork = made.fork(next(p.id for p in made.points.values() if p.next_step == "pay"), {"sum": 5})
    told = approve(made, waiting(made, fork), **edited)
    assert said(told) == (["asks review"] if edited else ["will pay", "may end on pay"])
