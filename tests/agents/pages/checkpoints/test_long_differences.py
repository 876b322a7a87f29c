"""A long difference: its first rows are drawn, the others are folded away, and none is lost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from checkpoints.values.ops import Append
from tests.agents.pages.run_page.test_live import NewPage, open_run
from tests.agents.pages.run_page.test_run_page import page_of
from tests.agents.pages.stored_histories import Walk, begin
from tests.factories import bob, make_card, make_team
from tests.harness.browser_checks import check, each_width

SUMMARY = re.compile(r"Show (\d+) more changes?\s*</summary>")


def long_walk(count: int, title: str = "Refund for Marit Ellery") -> Walk:
    """A run whose newest checkpoint has `count` rows of difference to the one before."""
    walk = begin(make_team(), title=title)
    walk.save("find_order", {"feedback": Append([{"text": f"message {n}"} for n in range(count)])}, "review")
    return walk


@pytest.mark.parametrize(("count", "folded"), [(30, []), (31, ["1"]), (75, ["45"])])
@pytest.mark.parametrize("query", ["?at=2", "checkpoints/2/", "comparisons/?a=1&b=2"])
def test_the_first_rows_are_drawn_and_the_rest_is_folded_away(query: str, count: int, folded: list[str]) -> None:
    walk = long_walk(count)
    html = page_of(walk.fresh(), bob(walk.run.team), query)
    first, _, rest = html.partition('<details class="diff-rest"')
    assert SUMMARY.findall(html) == folded
    assert first.count("<tr data-kind=") == min(count, 30)
    assert [f"/feedback/{n}" in html or f"message {n}" in html for n in range(count)] == [True] * count
    assert rest.partition("</details>")[0].count("<tr data-kind=") == max(count - 30, 0)


@each_width
def test_what_stands_below_a_long_difference_is_within_reach(new_page: NewPage, width: int) -> None:
    walk = long_walk(75)
    page = open_run(new_page, bob(walk.run.team), walk.fresh(), "?at=2", viewport={"width": width, "height": 900})
    folded = page.locator(".diff-rest .diff")
    expect(folded).to_be_hidden()
    assert check(page, "", []) == []
    page.get_by_text("Show 45 more changes").click()
    expect(folded.get_by_text("message 74")).to_be_visible()
    assert check(page, "", []) == []


def test_without_a_script_the_rest_is_unfolded_too(new_page: NewPage) -> None:
    walk = long_walk(75)
    page = new_page(bob(walk.run.team), java_script_enabled=False)
    page.goto(f"/runs/{walk.run.pk}/?at=2")
    page.get_by_text("Show 45 more changes").click()
    expect(page.get_by_text("message 74")).to_be_visible()


@pytest.mark.long
def test_what_was_unfolded_stays_open_while_the_page_is_drawn_anew(new_page: NewPage) -> None:
    walk = long_walk(75)
    page = open_run(new_page, bob(walk.run.team), walk.fresh())
    page.get_by_text("Show 45 more changes").click()
    walk.ask(card=make_card())
    expect(page.locator("#run-head")).to_contain_text("Held at “Review”")
    expect(page.get_by_text("message 74")).to_be_visible()


@pytest.mark.long
def test_a_long_value_of_one_row_is_folded_too_and_stays_unfolded(new_page: NewPage) -> None:
    walk = begin(make_team())
    walk.save("find_order", {"order": {"lines": [[n, n] for n in range(100)]}}, "review")
    page = open_run(new_page, bob(walk.run.team), walk.fresh(), viewport={"width": 390, "height": 844})
    assert page.locator("#inspect .diff").bounding_box()["height"] < 1200  # type: ignore[index]
    page.get_by_text("Show 372 more lines").click()
    walk.ask(card=make_card())
    expect(page.locator("#run-head")).to_contain_text("Held at “Review”")
    expect(page.locator(".value-rest[open]")).to_contain_text("99")
    assert page.locator("#inspect .diff").bounding_box()["height"] > 3000  # type: ignore[index]
