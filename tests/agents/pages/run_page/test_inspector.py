"""One checkpoint, looked at: its difference to another, its whole state, one value of it."""

from __future__ import annotations

import pytest
from django.test import Client

from checkpoints.values.ops import Append
from tests.agents.pages.stored_histories import ORDER, Walk, begin, held, sent_back
from tests.factories import bob, make_team
from tests.harness.signed_in_clients import signed_in

from .test_run_page import page_of, text_of


def walk_and_client() -> tuple[Walk, Client]:
    team = make_team()
    walk = begin(team)
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


def test_the_whole_state_is_a_tree_that_says_what_was_written_here() -> None:
    walk, client = walk_and_client()
    text = text_of(client.get(f"/runs/{walk.run.pk}/?at=2&view=state").content.decode())
    assert "order 4 fields, written here" in text
    assert "feedback" in text


def test_the_input_has_nothing_before_it_and_shows_its_whole_state() -> None:
    walk, client = walk_and_client()
    text = text_of(client.get(f"/runs/{walk.run.pk}/checkpoints/1/").content.decode())
    assert "Checkpoint 1, the input" in text
    assert "Difference to" not in text
    assert "proposal" in text


def test_a_rewind_is_compared_with_its_target_or_with_the_branch_that_it_left() -> None:
    team = make_team()
    reviewer = bob(team)
    run = sent_back(team, by=reviewer).fresh()
    to_target = page_of(run, reviewer, "?at=5")
    assert "Difference to 2" in to_target
    assert "Difference to 4, on the abandoned branch" in to_target
    assert "Only the frames came back." in text_of(to_target)
    assert "1284.00" in text_of(page_of(run, reviewer, "?at=5&to=4"))


def test_a_checkpoint_asked_for_by_a_page_is_a_fragment_and_otherwise_a_page() -> None:
    walk, client = walk_and_client()
    address = f"/runs/{walk.run.pk}/checkpoints/2/"
    assert "<html" in client.get(address).content.decode()
    fragment = client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert fragment.strip().startswith('<section class="inspect sheet" id="inspect"')


def test_a_checkpoint_that_the_run_does_not_have_is_not_found() -> None:
    walk, client = walk_and_client()
    assert client.get(f"/runs/{walk.run.pk}/checkpoints/9/").status_code == 404
    assert client.get(f"/runs/{walk.run.pk}/?at=9").status_code == 404
    assert client.get(f"/runs/{walk.run.pk}/?at=2&to=9").status_code == 404


def test_junk_in_the_address_reads_as_not_asked() -> None:
    walk, client = walk_and_client()
    response = client.get(f"/runs/{walk.run.pk}/?at=%C2%B2&view=evil&to=-1&before=x")
    assert "Checkpoint 2, after" in text_of(response.content.decode())


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


def test_ten_megabytes_in_one_field_are_measured_not_carried_along_and_readable_in_pages() -> None:
    walk, client = walk_and_client()
    walk.save("propose", {"order": {"mail": "a line of text\n" * 700_000 + "the end"}}, "review")
    for query in ("?at=3", "?at=3&view=state"):
        html = client.get(f"/runs/{walk.run.pk}/{query}").content.decode()
        assert len(html) < 100_000
        assert "the end" in html
        assert "characters are not shown here" in html
    root = f"/runs/{walk.run.pk}/checkpoints/3/value?at=/order/mail"
    first = client.get(root).content.decode()
    assert "1 to 50000 of 10500007 characters" in text_of(first)
    assert "the end" in client.get(f"{root}&from=10500000").content.decode()
    assert "from=50000" in first


def test_a_value_that_is_not_there_is_not_found() -> None:
    walk, client = walk_and_client()
    for pointer in ("/nothing", "/feedback/0", "/feedback/-", "/order/customer/deeper"):
        address = f"/runs/{walk.run.pk}/checkpoints/2/value?at={pointer}"
        assert (pointer, client.get(address).status_code) == (pointer, 404)


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
    assert "Nothing changed" not in html
    assert '<div class="tree' in html
