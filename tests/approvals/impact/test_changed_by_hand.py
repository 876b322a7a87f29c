"""What people change by hand after a gate, in what the steps after it write, has no permission there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from approvals.cards import binding

from .recorded import Recorded
from .small_plans import approve, edit, effect, gate, plan, said, step

TRIP = plan(
    gate("review", "offer", allows=("book", "pay"), asks=True), effect("book", "offer size", "room", guarded=True),
    step("count", "room rate", "sum"), effect("pay", "sum offer", "paid", guarded=True), step("end", "paid"),
)  # fmt: skip


def finished() -> Recorded:
    made = Recorded(TRIP, offer=1, size=1, rate=1, note="").agreed("review").ran("book", {"room": 1})
    return made.ran("count", {"sum": [1, 1]}).ran("pay", {"paid": 1}).ran("end")


def unpaid() -> Recorded:
    """The payment failed, and its permission is left."""
    made = finished().changed("pay", status="failed")
    grants = [replace(each, used_by=0) if each.effect == "pay" else each for each in made.gates[0].grants]
    made.gates[0] = replace(made.gates[0], grants=grants)
    return made


def test_what_an_approval_leaves_open_is_what_the_effect_is_made_of_after_the_gate() -> None:
    assert binding.loose_names(TRIP, gate_step="review", effect="pay") == {"sum", "room", "rate", "offer", "size"}
    assert binding.loose_names(TRIP, gate_step="review", effect="book") == set()
    assert binding.loose_names(TRIP, gate_step="pay", effect="pay") == set(), "one that asked about the effect itself"
    assert binding.loose_names(TRIP, gate_step="lost", effect="pay") == set()


@pytest.mark.parametrize("changed", [{"sum": 5}, {"rate": 2}])
def test_it_needs_another_permission(changed: dict[str, Any]) -> None:
    """It was said to run."""
    assert said(edit(unpaid(), "pay", **changed))[:2] == ["may pay on review", "asks review"]


def test_the_walk_up_to_it_counts_too() -> None:
    assert "may pay on review" in said(edit(unpaid(), "count", rate=2))
    assert "will pay" in said(edit(unpaid(), "count", note="x"))


def test_a_yes_to_what_was_changed_goes_on_with_it() -> None:
    made = finished().moved("edit", "pay", sum=5).reopened("review").asked("review")
    assert said(approve(made))[0] == "will pay"
