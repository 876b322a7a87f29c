"""A server that hangs: what is sent says so at once, and nothing that hears nothing calls itself live."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, WebSocketRoute, expect

from tests.factories import ann, make_gate, make_team
from tests.harness.browser_checks import is_live

NewPage = Callable[..., Page]


class Hanging:
    """Stands between a page and its server, which answers nothing any more once it hangs."""

    def __init__(self, page: Page) -> None:
        self.hangs = False
        page.route_web_socket(re.compile("/ws/"), self.socket)

    def socket(self, route: WebSocketRoute) -> None:
        if self.hangs:  # a connection that nobody answers would be opened by the browser's driver itself
            route.close()
            return
        server = route.connect_to_server()
        server.on_message(lambda said: None if self.hangs else route.send(said))


def test_a_decision_to_a_server_that_hangs_says_that_it_is_sent_and_that_nothing_is_live(new_page: NewPage) -> None:
    """The page stood still for a minute under the word Live."""
    gate = make_gate(team=make_team())
    page = new_page(ann(gate.team))
    server = Hanging(page)
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    server.hangs = True
    page.route(f"**/gates/{gate.pk}/decisions/", lambda route: None)
    page.locator("label[data-choice=approve]").click()
    page.locator("[data-commit]:visible").click()
    expect(page.locator("#decision .sending")).to_have_text("Sending…", timeout=1_000)
    expect(page.locator("hp-live")).not_to_have_attribute("data-live", "on")
    expect(page.locator("hp-live")).not_to_contain_text("Live")


def test_what_was_answered_is_not_being_sent_any_more(new_page: NewPage) -> None:
    gate = make_gate(team=make_team())
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    page.route(f"**/gates/{gate.pk}/decisions/", lambda route: route.abort())
    page.locator("label[data-choice=approve]").click()
    page.locator("[data-commit]:visible").click()
    expect(page.locator(".not-sent")).to_be_visible()
    expect(page.locator(".sending")).to_have_count(0)
