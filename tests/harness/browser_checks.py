"""What a real browser says of a page: its own complaints, axe's findings, whether it is live."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.harness import examples
from tests.harness.waiting import until

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Telling of each element that is right too takes longer than finding out what is wrong.
OPTIONS = {"resultTypes": ["violations"], "preload": False}

# What is asked once more in each look but the first: what a width or a scheme changes. The other rules read the
# document, which all looks share; `make test-long` asks them in each.
CHANGED = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]
ONCE_MORE = TAGS if examples.trying_all() else CHANGED

# Each width and each scheme; what is wrong in the other two combinations alone is found by `make test-long`.
LOOKS = [(1440, "light"), (390, "dark")]
LONG_LOOKS = [*LOOKS, (1440, "dark"), (390, "light")]
HEIGHT = 900
KEPT = "(({ waiting, sending }) => !waiting && !sending)(document.querySelector('hp-draft'))"
# What people do on a page, at the width where there is least room; all else that is done in a browser is done at 1,440.
each_width = pytest.mark.parametrize("width", [390, pytest.param(1440, marks=pytest.mark.long)])


def each_look(page: Page) -> Iterator[tuple[int, str]]:
    """Give an open page each look in turn, from its top. Without motion, or colours would be read as they change.

    From where a wider page was scrolled to, a button may be half under the bar of a decision: axe takes it for small.
    """
    for width, scheme in LONG_LOOKS if examples.trying_all() else LOOKS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.evaluate("scrollTo(0, 0)")
        yield width, scheme


def watched(page: Page) -> list[str]:
    """Everything that the page complains about from now on, the content policy's refusals among it."""
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    return said


def composing(page: Page, text: str) -> None:
    """Begin a word as an input method does, in the field that has the focus."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)})


def is_live(page: Page) -> None:
    expect(page.locator("hp-live")).to_have_attribute("data-live", "on")


def is_kept(page: Page) -> None:
    """Wait until the server has all that was entered in a gate's form.

    A page that is left before sends the rest as it goes, and the page that follows may load itself once more with it.
    """
    # Not wait_for_function: the page's policy refuses to evaluate what it looks at once more.
    until(lambda: page.evaluate(KEPT), what="what was entered is kept")


def check(page: Page, address: str, said: list[str], rules: list[str] = TAGS) -> list[str]:
    """The faults of a page: what it complained about, what axe-core finds, text that runs out of a narrow page.

    The complaints are read before axe is put into the page.
    """
    if address:
        page.goto(address)
    complaints = said[:]
    said.clear()
    return [f"{address}: {words}" for words in [*complaints, *by_axe(page, rules), *too_wide(page)]]


def by_axe(page: Page, rules: list[str] = TAGS) -> list[str]:
    """What axe-core finds in a page.

    It does not load the style sheets once more, as it would by default: it would write them into the page, which the
    policy refuses, under addresses that do not exist.
    """
    found = Axe().run(page, options={**OPTIONS, "runOnly": rules}).response["violations"]
    return [f"{fault['id']} {[node['target'] for node in fault['nodes']]}" for fault in found]


def too_wide(page: Page) -> list[str]:
    return ["wider than the window"] if page.evaluate("document.documentElement.scrollWidth > innerWidth") else []


def check_each_look(page: Page, address: str, said: list[str]) -> list[str]:
    """The faults of a page in each look: see `check`. It is opened once, in the first of them."""
    faults, rules = list[str](), TAGS
    for width, scheme in each_look(page):
        faults += [f"{width} {scheme}: {fault}" for fault in check(page, address, said, rules)]
        address, rules = "", ONCE_MORE
    return faults
