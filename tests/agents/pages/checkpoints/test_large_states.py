"""A state of some megabytes: what is closed stays out of the page until it is opened, and all of it can be reached."""

from __future__ import annotations

import re

from django.db import connection
from playwright.sync_api import expect

from approvals.models import Gate
from checkpoints.models import Checkpoint, Run
from tests.agents.pages.run_page.test_live import NewPage, open_run
from tests.agents.pages.run_page.test_run_page import page_of, text_of
from tests.agents.pages.stored_histories import PROPOSAL, begin
from tests.factories import bob, eve, make_team
from tests.harness.signed_in_clients import signed_in

BOUND = 400_000  # characters of a page
LINES = [{"id": place, "text": f"Line {place} " + "of the letter " * 14} for place in range(20_000)]


def large() -> Gate:
    """A gate over a state of 5 MB, most of it in closed branches of two fields."""
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
        assert "Line 19999 of" in last
        assert "19,940 more not drawn here" in text_of(last)
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


def test_opening_a_branch_fetches_it_in_place(new_page: NewPage) -> None:
    gate = large()
    run = Run.objects.get(pk=gate.run_id)
    user = bob(run.team)
    assert "Line 7 of" not in page_of(run, user, "?at=3&view=state")
    page = open_run(new_page, user, run, "?at=3&view=state")
    for shown in ("order2 fields", "a/b1 field", "lineslist of 20,000", "72 fields"):
        page.locator(".inspect .tree summary").filter(has_text=re.compile(f"^{shown}")).first.click()
    expect(page.locator(".inspect .tree")).to_contain_text("Line 7 of")
