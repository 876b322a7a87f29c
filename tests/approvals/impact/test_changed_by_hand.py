"""What people change by hand after a gate, in what the steps after it write, has no permission there."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.cards import binding

from .model import Engine, Method
from .small_plans import agree, approve, at, edit, effect, engine, gate, plan, said, step, waiting

TRIP = plan(
    gate("review", "offer", allows=("book", "pay"), asks=True), effect("book", "offer size", "room", guarded=True),
    step("count", "room rate", "sum"), effect("pay", "sum offer", "paid", guarded=True), step("end", "paid"),
)  # fmt: skip
METHODS: dict[str, Method] = {
    "book": lambda engine, offer, size: ({"room": offer}, None),
    "count": lambda engine, room, rate: ({"sum": [room, rate]}, None),
    "pay": lambda engine, sum, offer: ({"paid": 1}, None),
}


def finished() -> tuple[Engine, int]:
    made = engine(TRIP, METHODS)
    run = made.start(offer=1, size=1, rate=1, note="")
    agree(made, run)
    return made, run


def test_what_an_approval_leaves_open_is_what_the_effect_is_made_of_after_the_gate() -> None:
    assert binding.loose_names(TRIP, gate_step="review", effect="pay") == {"sum", "room", "rate", "offer", "size"}
    assert binding.loose_names(TRIP, gate_step="review", effect="book") == set()
    assert binding.loose_names(TRIP, gate_step="pay", effect="pay") == set(), "one that asked about the effect itself"
    assert binding.loose_names(TRIP, gate_step="lost", effect="pay") == set()


@pytest.mark.parametrize("changed", [{"sum": 5}, {"rate": 2}])
def test_it_needs_another_permission(changed: dict[str, Any]) -> None:
    """It was said to run."""
    made, run = finished()
    made.rows[-1].status, made.gates[0].grants[1].used_by = "failed", 0
    assert said(edit(made, run, "pay", **changed))[:2] == ["may pay on review", "asks review"]


def test_the_walk_up_to_it_counts_too() -> None:
    made, run = finished()
    made.rows[-1].status, made.gates[0].grants[1].used_by = "failed", 0
    assert "may pay on review" in said(edit(made, run, "count", rate=2))
    assert "will pay" in said(edit(made, run, "count", note="x"))


def test_a_yes_to_what_was_changed_goes_on_with_it() -> None:
    made, run = finished()
    made.move(run, at(made, run, "pay").id, "edit", {"sum": 5})
    assert said(approve(made, waiting(made, run)))[0] == "will pay"
