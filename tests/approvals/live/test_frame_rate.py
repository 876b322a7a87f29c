"""How many frames a socket may send: plenty at once, and a few a second after that."""

from __future__ import annotations

from approvals.live.frame_rate import A_SECOND, AT_ONCE, FrameRate


def test_a_burst_is_taken_and_what_comes_after_it_is_not() -> None:
    pace = FrameRate(since=0.0)
    assert [pace.allows(now=0.0) for _ in range(AT_ONCE + 2)] == [True] * AT_ONCE + [False, False]


def test_it_fills_again_as_time_goes_by_and_never_over_its_brim() -> None:
    pace = FrameRate(left=0.0, since=0.0)
    assert not pace.allows(now=0.5 / A_SECOND)
    assert pace.allows(now=1.0 / A_SECOND)
    assert not pace.allows(now=1.5 / A_SECOND)
    pace.allows(now=1e6)
    assert pace.left == AT_ONCE - 1


def test_a_page_that_asks_twice_a_second_for_an_hour_is_never_refused() -> None:
    pace = FrameRate(since=0.0)
    assert all(pace.allows(now=second / 2) for second in range(7200))
