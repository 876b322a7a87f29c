"""The way to a head, told by where it turned."""

from __future__ import annotations

import pytest

from agents.runs.course import Course, CourseTurn

RUN, OTHER = 7, 3


@pytest.mark.parametrize(
    ("head", "turns", "way"),
    [
        (0, (), []),
        (5, (), [1, 2, 3, 4, 5]),
        (6, (CourseTurn(5, RUN, 2),), [1, 2, 5, 6]),  # sent back once
        (9, (CourseTurn(5, RUN, 2), CourseTurn(8, RUN, 3)), [1, 2, 3, 8, 9]),  # and then to what the first had left
        (9, (CourseTurn(5, RUN, 3), CourseTurn(8, RUN, 6)), [1, 2, 3, 5, 6, 8, 9]),
        (6, (CourseTurn(5, OTHER, 4),), [5, 6]),  # a fork that went back over the point at which it began
    ],
)
def test_the_way_is_what_leads_to_the_head(head: int, turns: tuple[CourseTurn, ...], way: list[int]) -> None:
    assert sorted(Course(RUN, head, turns).on_path(range(0, 20))) == way


def test_a_run_waits_where_it_only_asked_since() -> None:
    asked = Course(RUN, 6, aside=((5, "pay"), (6, "pay")))
    assert [asked.awaits(base, "pay") for base in (0, 3, 4, 5, 6)] == [False, False, True, True, True]
    assert not asked.awaits(4, "reply")
