"""The parent's page, in a real browser, follows its children: each that asks, ends or starts work."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from checkpoints.models import Event
from tests.agents.children.families import child, make_parent
from tests.factories import bob
from tests.factories.driven_runs import advance, decide

NewPage = Callable[..., Page]


def test_the_page_of_a_parent_follows_its_children(new_page: NewPage) -> None:
    run = advance(make_parent("a", "b", modes={"a": "ask"}))
    told = Event.objects.filter(run_id=run.pk).count()
    page = new_page(bob(run.team))
    page.goto(f"/runs/{run.pk}/")
    expect(page.locator("hp-live")).to_have_attribute("data-live", "on")
    children = page.locator("#children")
    expect(children.locator(".hint")).to_have_text("2 queued")

    asking = advance(child(run, "a"))
    expect(children).to_contain_text("Held at a gate")
    expect(children.get_by_role("link", name="Good?")).to_be_visible()
    decide(asking)
    expect(children.locator(".hint")).to_have_text("2 queued")
    advance(asking)
    expect(children.locator(".hint")).to_have_text("1 queued, 1 completed")
    assert Event.objects.filter(run_id=run.pk).count() == told
