"""The number of gates that wait, in the page's title, on its icon and on the installed app."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import BrowserContext, Page, expect

from tests.factories import ann, bob, decide, make_gate, make_policy, make_team
from tests.harness.browser_checks import is_live, watched

NewContext = Callable[..., BrowserContext]
# What the browser is asked to show on the app's icon, which only an installed one has.
BADGES = """
globalThis.badges = [];
navigator.setAppBadge = async (count) => { badges.push(count); };
navigator.clearAppBadge = async () => { badges.push(0); };
"""

OUT_OF_SIGHT = """
Object.defineProperty(Document.prototype, "visibilityState", { get: () => "hidden" });
Object.defineProperty(Document.prototype, "hidden", { get: () => true });
"""


def icon(page: Page) -> str:
    found: str = page.evaluate("document.querySelector('link[rel=icon]').href")
    return found.rpartition("/")[2].partition(".")[0]


def badge(page: Page) -> Any:
    return page.evaluate("badges.at(-1)")


def test_it_goes_with_the_gates_that_wait(new_context: NewContext) -> None:
    team = make_team()
    reader = ann(team)
    policy = make_policy(team)
    first, _second = (make_gate(policy=policy, team=team, started_by=bob(team)) for _ in range(2))
    context = new_context(reader)
    context.add_init_script(BADGES)
    page = context.new_page()
    said = watched(page)
    page.goto("/")
    expect(page).to_have_title("(2) Inbox · Holdpoint")
    assert (icon(page), badge(page)) == ("mark-waiting", 2)
    is_live(page)
    decide(first, reader)
    expect(page).to_have_title("(1) Inbox · Holdpoint")
    assert badge(page) == 1
    page.goto(f"/gates/{first.pk}/")
    assert page.title().startswith("(1) ")
    page.goto("/agents/")
    expect(page).to_have_title("(1) Agents · Holdpoint")
    is_live(page)
    make_gate(policy=policy, team=team, started_by=bob(team))
    expect(page).to_have_title("(2) Agents · Holdpoint")
    assert said == []


def test_a_page_that_nobody_sees_counts_on(new_context: NewContext) -> None:
    """A tab in the background is there for its title; all else in it waits until it is looked at."""
    team = make_team()
    reader, policy = ann(team), make_policy(team)
    context = new_context(reader)
    context.add_init_script(OUT_OF_SIGHT)
    page = context.new_page()
    page.goto("/")
    is_live(page)
    make_gate(policy=policy, team=team, started_by=bob(team))
    expect(page).to_have_title("(1) Inbox · Holdpoint")
    assert page.locator(".gate-row").count() == 0, "the list is not fetched"


def test_with_nothing_waiting_nothing_is_marked(new_context: NewContext) -> None:
    context = new_context(ann(make_team()))
    context.add_init_script(BADGES)
    page = context.new_page()
    page.goto("/")
    expect(page).to_have_title("Inbox · Holdpoint")
    assert (icon(page), badge(page)) == ("mark", 0)


def test_who_signed_out_leaves_no_number(new_context: NewContext) -> None:
    context = new_context()
    context.add_init_script(BADGES)
    page = context.new_page()
    page.goto("/accounts/login/")
    page.wait_for_function("badges.length")
    assert badge(page) == 0
