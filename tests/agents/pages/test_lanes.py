"""The graph beside the rows: which lane each row stands in, and which lines its slice draws."""

from __future__ import annotations

import pytest

from agents.pages.run.lanes import LaneCurve, LaneLine, LaneNode, count_lanes, lay_out

STRAIGHT = [LaneNode("a"), LaneNode("b", "a"), LaneNode("c", "b")]
ONE_BRANCH = [
    LaneNode("a"),
    LaneNode("b", "a", "rejected"),
    LaneNode("c", "b", "rejected"),
    LaneNode("d", "a", abandoned_tip="c"),
]
TWO_BRANCHES = [
    LaneNode("a"),
    LaneNode("b", "a", "rejected"),
    LaneNode("c", "a", "rejected", abandoned_tip="b"),
    LaneNode("d", "c", "rejected"),
    LaneNode("e", "a", abandoned_tip="d"),
]
ONE_AFTER_THE_OTHER = [
    LaneNode("a"),
    LaneNode("b", "a", "rejected"),
    LaneNode("c", "a", abandoned_tip="b"),
    LaneNode("d", "c", "rejected"),
    LaneNode("e", "c", abandoned_tip="d"),
]
BRANCH_OF_A_BRANCH = [
    LaneNode("a"),
    LaneNode("b", "a", "rejected"),
    LaneNode("c", "b", "rejected"),
    LaneNode("d", "b", "rejected", abandoned_tip="c"),
    LaneNode("e", "a", abandoned_tip="d"),
]
TWO_FORKS = [LaneNode("a"), LaneNode("f", "a", "fork"), LaneNode("g", "a", "fork"), LaneNode("b", "a")]


@pytest.mark.parametrize(
    ("nodes", "lanes"),
    [
        ([], []),
        ([LaneNode("a")], [0]),
        (STRAIGHT, [0, 0, 0]),
        (ONE_BRANCH, [0, 1, 1, 0]),
        (TWO_BRANCHES, [0, 1, 2, 2, 0]),
        (ONE_AFTER_THE_OTHER, [0, 1, 0, 1, 0]),
        (BRANCH_OF_A_BRANCH, [0, 1, 1, 2, 0]),
        (TWO_FORKS, [0, 1, 2, 0]),
        ([LaneNode("b", "above", "rejected"), LaneNode("c", "a", abandoned_tip="b")], [1, 0]),
    ],
    ids=["none", "one", "straight", "branch", "two side by side", "two in turn", "nested", "forks", "cut off above"],
)
def test_each_row_gets_the_first_lane_that_is_free(nodes: list[LaneNode], lanes: list[int]) -> None:
    assert [piece.lane for piece in lay_out(nodes)] == lanes
    assert count_lanes(lay_out(nodes)) == max(lanes, default=0) + 1


def test_a_straight_run_is_one_unbroken_line() -> None:
    slices = lay_out(STRAIGHT)
    assert [piece.lines for piece in slices] == [
        [LaneLine("main", 14, "18", "100%")],
        [LaneLine("main", 14, "0", "18"), LaneLine("main", 14, "18", "100%")],
        [LaneLine("main", 14, "0", "18")],
    ]
    assert not any(piece.curves for piece in slices)


def test_the_main_line_passes_the_rows_of_a_branch() -> None:
    _, b, c, _ = lay_out(ONE_BRANCH)
    assert LaneLine("main", 14, "0", "100%") in b.lines
    assert LaneLine("main", 14, "0", "100%") in c.lines


def test_a_branch_leaves_with_a_curve_and_comes_back_dashed() -> None:
    a, _, tip, rewind = lay_out(ONE_BRANCH)
    assert [curve.kind for curve in a.curves] == ["rejected"]
    assert a.curves[0].d.startswith("M14 18C")
    assert a.curves[0].d.endswith(" 36 38")
    assert LaneLine("back", 36, "25", "100%") in tip.lines
    assert rewind.curves == [LaneCurve("back", "M36 0C36 14 32 18 22 18")]


def test_lines_stop_on_both_sides_of_the_hold_line() -> None:
    _, held, _ = lay_out([LaneNode("a"), LaneNode("gate", "a", on_hold=True), LaneNode("pay", "gate", "ahead")])
    assert held.lines == [LaneLine("main", 14, "0", "15"), LaneLine("ahead", 14, "22", "100%")]


def test_a_window_continues_the_line_from_above() -> None:
    first, second = lay_out([LaneNode("m", "before the window"), LaneNode("n", "m")])
    assert first.lines[0] == LaneLine("main", 14, "0", "18")
    assert second.lines == [LaneLine("main", 14, "0", "18")]


def test_a_return_between_two_side_lanes_ends_on_the_near_side() -> None:
    *_, d, _ = lay_out(BRANCH_OF_A_BRANCH)
    assert d.curves[0].d == "M36 0C36 14 40 18 50 18"
