"""One checkpoint, looked at: its difference to another, its whole state, one value of it; also where they are large."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from playwright.sync_api import expect

from approvals.models import Gate
from checkpoints.models import Checkpoint, Run
from checkpoints.values.ops import Append
from tests.agents.pages.stored_histories import ORDER, PROPOSAL, Walk, begin, held, sent_back
from tests.agents.pages.test_run_page import NewPage, open_run, page_of, text_of
from tests.factories import bob, eve, make_team
from tests.harness.browser_checks import check
from tests.harness.signed_in_clients import signed_in


def walk_and_client() -> tuple[Walk, Client]:
    walk = begin(team := make_team())
    walk.save("find_order", {"order": ORDER}, "propose")
    return walk, signed_in(bob(team))


def test_the_newest_checkpoint_is_shown_first_as_a_difference_to_the_one_before() -> None:
    walk, client = walk_and_client()
    html = client.get(f"/runs/{walk.run.pk}/").content.decode()
    text = text_of(html)
    assert "Checkpoint 2, after “Find order”" in text
    assert "Difference to 1" in text
    assert "<ins>" in html
    assert "Marit Ellery" in text
    assert "4 fields are the same as in checkpoint 1." in text


def test_a_checkpoint_is_a_page_or_a_fragment_and_what_is_not_there_is_not_found() -> None:
    walk, client = walk_and_client()
    root = f"/runs/{walk.run.pk}/"
    tree = text_of(client.get(f"{root}?at=2&view=state").content.decode())
    assert "order 4 fields, written here" in tree
    assert "<html" in client.get(f"{root}checkpoints/2/").content.decode()
    fragment = client.get(f"{root}checkpoints/2/", headers={"HX-Request": "true"}).content.decode()
    assert fragment.strip().startswith('<section class="inspect sheet" id="inspect"')
    for nothing in ("checkpoints/9/", "?at=9", "?at=2&to=9"):
        assert client.get(f"{root}{nothing}").status_code == 404
    junk = client.get(f"{root}?at=%C2%B2&view=evil&to=-1&before=x").content.decode()
    assert "Checkpoint 2, after" in text_of(junk), "junk reads as not asked"


def test_a_rewind_is_compared_with_its_target_or_with_the_branch_that_it_left() -> None:
    reviewer = bob(team := make_team())
    run = sent_back(team, by=reviewer).fresh()
    to_target = page_of(run, reviewer, "?at=5")
    assert "Difference to 2" in to_target
    assert "Difference to 4, on the abandoned branch" in to_target
    assert "Only the frames came back." in text_of(to_target)
    assert "1284.00" in text_of(page_of(run, reviewer, "?at=5&to=4"))


def test_any_one_value_is_shown_in_full_and_a_long_list_in_pages() -> None:
    walk, client = walk_and_client()
    walk.save("propose", {"feedback": Append([{"text": f"message {n}"} for n in range(450)])}, "review")
    root = f"/runs/{walk.run.pk}/checkpoints/3/value"
    first = text_of(client.get(f"{root}?at=/feedback").content.decode())
    assert "1 to 200 of 450" in first
    last = text_of(client.get(f"{root}/feedback?from=400").content.decode())
    assert "401 to 450 of 450" in last
    assert "message 449" in last
    assert "Marit Ellery" in client.get(f"{root}?at=/order/customer").content.decode()
    for pointer in ("/nothing", "/feedback/450", "/feedback/-", "/order/customer/deeper"):
        assert (pointer, client.get(f"{root}?at={pointer}").status_code) == (pointer, 404)


def test_a_megabyte_in_one_field_are_measured_not_carried_along_and_readable_in_pages() -> None:
    walk, client = walk_and_client()
    walk.save("propose", {"order": {"mail": "a line of text\n" * 70_000 + "the end"}}, "review")
    for query in ("?at=3", "?at=3&view=state"):
        html = client.get(f"/runs/{walk.run.pk}/{query}").content.decode()
        assert len(html) < 100_000
        assert "the end" in html
        assert "characters are not shown here" in html
    root = f"/runs/{walk.run.pk}/checkpoints/3/value?at=/order/mail"
    first = client.get(root).content.decode()
    assert "1 to 50000 of 1050007 characters" in text_of(first)
    assert "the end" in client.get(f"{root}&from=1050000").content.decode()
    assert "from=50000" in first


def test_markup_in_a_value_is_text_in_the_difference_and_in_the_tree() -> None:
    walk, client = walk_and_client()
    walk.save("propose", {"order": {"<b>key": "<script>alert(1)</script>"}}, "review")
    for query in ("?at=3", "?at=3&view=state"):
        html = client.get(f"/runs/{walk.run.pk}/{query}").content.decode()
        assert "&lt;script&gt;alert(1)" in html
        assert "<script>alert" not in html
        assert "<b>key" not in html


@pytest.mark.parametrize("query", ["?at=1", "?at=1&view=changes", "checkpoints/1/"])
def test_the_first_checkpoint_is_shown_whole_for_it_follows_none(query: str) -> None:
    """It said "Nothing changed.  field  the same.": the page took the view that was asked for, which there is not."""
    run = held(make_team()).run
    html = page_of(run, bob(run.team), query)
    assert "Checkpoint 1, the input" in text_of(html)
    assert "Difference to" not in html
    assert "Nothing changed" not in html
    assert '<div class="tree' in html


BOUND = 400_000  # characters of a page
LINES = [{"id": place, "text": f"Line {place} " + "of the letter " * 14} for place in range(4_000)]


def large() -> Gate:
    """A gate over a state of a megabyte, most of it in closed branches of two fields."""
    walk = begin(make_team())
    deep = {"a/b": {"lines": LINES}, "small": {"inner": "kept in the page"}}
    walk.save("find_order", {"order": deep}, "propose")
    walk.save("propose", {"proposal": PROPOSAL}, "review")
    return walk.ask()


def test_a_large_state_weighs_little_and_is_fetched_branch_by_branch() -> None:
    gate = large()
    client = signed_in(bob(gate.run.team))
    run_page = client.get(f"/runs/{gate.run_id}/?at=3&view=state").content.decode()
    gate_page = client.get(f"/gates/{gate.pk}/").content.decode()
    for html, value in (
        (run_page, f"/runs/{gate.run_id}/checkpoints/3/value"),
        (gate_page, f"/gates/{gate.pk}/values/"),
    ):
        assert len(html) < BOUND
        assert "Line 7 of" not in html
        assert f'hx-get="{value}?at=/order&amp;tree=1"' in html
        assert f'<a href="{value}?at=/order">Show it</a>' in html
        first = client.get(f"{value}?at=/order&tree=1").content.decode()
        assert "<html" not in first
        assert "kept in the page" in first
        assert "1 field" in first
        assert f'hx-get="{value}?at=/order/a~1b&amp;tree=1"' in first
        last = client.get(f"{value}?at=/order/a~1b/lines&tree=1").content.decode()
        assert "Line 7 of" in last
        assert "Line 3999 of" in last
        assert "3,940 more not drawn here" in text_of(last)
        assert len(last) < BOUND
        assert client.get(f"{value}?at=/order/none&tree=1").status_code == 404
        assert signed_in(eve()).get(f"{value}?at=/order&tree=1").status_code == 404


def test_nothing_unverified_is_fetched() -> None:
    gate = large()
    head = Checkpoint.objects.get(run=gate.run_id, seq=3)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE checkpoints_checkpoint SET digest = %s WHERE id = %s", [b"\0" * 32, head.pk])
    client = signed_in(bob(gate.run.team))
    for value in (f"/runs/{gate.run_id}/checkpoints/3/value", f"/gates/{gate.pk}/values/"):
        html = client.get(f"{value}?at=/order/small&tree=1").content.decode()
        assert "does not verify" in html
        assert "kept in the page" not in html
        assert "<html" not in html


SUMMARY = re.compile(r"Show (\d+) more changes?\s*</summary>")


def long_walk(count: int, team: Group | None = None) -> Walk:
    """A run whose newest checkpoint has `count` rows of difference to the one before."""
    walk = begin(team or make_team())
    walk.save("find_order", {"feedback": Append([{"text": f"message {n}"} for n in range(count)])}, "review")
    return walk


@pytest.mark.parametrize(
    ("query", "count", "folded"),
    [("?at=2", 30, []), ("?at=2", 31, ["1"]), ("checkpoints/2/", 75, ["45"]), ("comparisons/?a=1&b=2", 75, ["45"])],
)
def test_the_first_rows_are_drawn_and_the_rest_is_folded_away(query: str, count: int, folded: list[str]) -> None:
    walk = long_walk(count)
    html = page_of(walk.fresh(), bob(walk.run.team), query)
    first, _, rest = html.partition('<details class="diff-rest"')
    assert SUMMARY.findall(html) == folded
    assert first.count("<tr data-kind=") == min(count, 30)
    assert [f"/feedback/{n}" in html or f"message {n}" in html for n in range(count)] == [True] * count
    assert rest.partition("</details>")[0].count("<tr data-kind=") == max(count - 30, 0)


def test_a_branch_is_fetched_in_place_and_what_stands_below_a_long_difference_is_within_reach(
    new_page: NewPage,
) -> None:
    run = Run.objects.get(pk=large().run_id)
    user = bob(run.team)
    page = open_run(new_page, user, run, "?at=3&view=state", viewport={"width": 390, "height": 900})
    expect(page.locator(".inspect .tree")).not_to_contain_text("Line 7 of")
    for shown in ("order2 fields", "a/b1 field", "lineslist of 4,000", "72 fields"):
        page.locator(".inspect .tree summary").filter(has_text=re.compile(f"^{shown}")).first.click()
    expect(page.locator(".inspect .tree")).to_contain_text("Line 7 of")
    page.goto(f"/runs/{long_walk(75, run.team).run.pk}/?at=2")
    folded = page.locator(".diff-rest .diff")
    expect(folded).to_be_hidden()
    page.get_by_text("Show 45 more changes").click()
    expect(folded.get_by_text("message 74")).to_be_visible()
    assert check(page, "", []) == []
