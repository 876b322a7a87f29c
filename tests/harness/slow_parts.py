"""A server that is slow to draw the parts of a form."""

from __future__ import annotations

from playwright.sync_api import Page, Route

from .waiting import until


class SlowParts:
    """Holds back what a page asks of the server's forms, until the test lets it through or cuts it off."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.waiting: list[Route] | None = []
        page.route("**/forms/", self.come)

    def come(self, route: Route) -> None:
        if self.waiting is None:
            route.continue_()
        else:
            self.waiting.append(route)

    def go_on(self, *, cut_off: bool = False) -> None:
        until(lambda: self.page.evaluate("1") and self.waiting, what="a part of a form is asked for")
        waiting, self.waiting = self.waiting, None
        for route in waiting or []:
            route.abort() if cut_off else route.continue_()
