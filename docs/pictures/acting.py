"""Actions of people on the pages: sign in, open a gate, decide, wait for a run."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, BrowserContext, Page, expect

DEMO = "for the screenshots alone"


def sign_in_browser(browser: Browser, base: str, width: int, scheme: str, *, who: str = "ann") -> BrowserContext:
    """Open a browser profile and sign in."""
    context = browser.new_context(base_url=base, viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto("/")
    page.fill("[name=login]", who)
    page.fill("[name=password]", DEMO)
    page.press("[name=password]", "Enter")
    page.wait_for_selector(".gate-list, .empty")
    page.close()
    return context


def make_decision(page: Page, choice: str) -> None:
    """Choose, and press the button that then appears. If a gate has several actions, approve those not edited."""
    rest = page.locator("section.action:not(:has([data-ballot]:checked)) label[data-choice=approve]")
    if choice != "edit":
        page.locator(f"#decide label[data-choice={choice}]").click()
    elif page.locator("[data-ballot]").count():
        while rest.count():
            rest.first.click()
    else:
        page.locator("label[data-choice=edit]").click()
    send_form(page)


def send_form(page: Page, button: str = "button.commit:visible") -> None:
    """Press the button that sends a form, and wait for the page that follows."""
    with page.expect_navigation():
        page.locator(button).click()


def open_gate(page: Page, name: str) -> None:
    """Open the gate whose title contains `name`."""
    page.goto("/")
    page.locator(".gate-list a", has_text=name).first.click()
    page.wait_for_selector("#decision")


def confirm_reader(page: Page) -> None:
    """Confirm who the reader is, where the page asks for it."""
    if page.locator("[name=password]").count():
        page.fill("[name=password]", DEMO)
        with page.expect_navigation():
            page.get_by_role("button", name="Confirm", exact=True).click()


def run_of(page: Page) -> str:
    """Return the address of the run that waits at the gate on the page."""
    address = page.locator("main a[href^='/runs/']").first.get_attribute("href") or ""
    return address.partition("?")[0]


def wait_for_words(page: Page, run: str, words: str) -> None:
    """Wait on the run's live page until its header contains `words`."""
    page.goto(run)
    expect(page.locator("#run-head")).to_contain_text(words, timeout=30_000)


def seq_of(page: Page, step: str) -> int:
    """Return the number of a step's newest checkpoint, from the timeline on the page."""
    row = page.locator("#timeline a[data-pick]", has_text=re.compile(rf"\d{step}$")).last
    return int(row.locator(".n").inner_text())
