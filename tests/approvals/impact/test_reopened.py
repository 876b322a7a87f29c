"""A gate that was opened again for the sake of an effect: a yes goes on with that effect, not with what follows."""

from __future__ import annotations

import pytest

from .recorded import Recorded
from .small_plans import approve, effect, gate, plan, said, step, stop

TRIP = plan(
    step("draft", "x", "offer"), gate("review", "offer", allows=("book", "pay"), edits=("offer", "note"), asks=True),
    effect("book", "offer", "room", guarded=True), step("count", "room", "sum"),
    effect("pay", "sum", "paid", guarded=True), step("end", "paid"),
)  # fmt: skip


def finished() -> Recorded:
    made = Recorded(TRIP, x=1).ran("draft", {"offer": 1}).agreed("review").ran("book", {"room": 1})
    return made.ran("count", {"sum": 1}).ran("pay").ran("end")


def reopened() -> Recorded:
    """A finished trip that was sent back to its payment: the permission for that is used."""
    return finished().moved("rewind", "pay").changed("pay", again=True).reopened("review").asked("review")


def test_a_yes_goes_on_with_the_effect_for_whose_sake_it_was_opened() -> None:
    """It was told as if the run went through all that follows the gate once more."""
    told = approve(reopened())
    assert said(told) == ["will pay", "may end on pay", "undone pay"]
    assert "book" in [row.step for row in told.kept]


def test_an_edit_of_what_nothing_since_has_read_goes_on_with_it_too() -> None:
    assert said(approve(reopened(), note="n")) == ["will pay", "may end on pay", "undone pay"]


def test_an_edit_of_what_was_made_since_asks_again_and_takes_that_back() -> None:
    told = approve(reopened(), offer=2)
    assert said(told) == ["asks review", "undone pay", "may_undone book on review"]
    assert [row.step for row in told.kept] == ["draft"]


def test_the_other_words_there_do_what_they_do_at_any_gate() -> None:
    assert said(stop(reopened())) == ["undone pay"]


@pytest.mark.parametrize("edited", [{}, {"offer": 2}])
def test_in_a_fork_the_gate_of_its_origin_is_where_an_edit_goes_back_to(edited: dict[str, int]) -> None:
    told = approve(finished().forked("pay", sum=5).reopened("review").asked("review"), **edited)
    assert said(told) == (["asks review"] if edited else ["will pay", "may end on pay"])
