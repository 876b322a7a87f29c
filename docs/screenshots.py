"""`make screenshots`: the inbox, a gate and a run, as a new user meets them, narrow and wide, light and dark.

Starts a whole stack of its own with the first inbox, signs in, and keeps the pictures in docs/screenshots/.
On the way ann edits and approves one refund and sends another back, so that there is a history to see.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.harness import chromium
from tests.stack.running import Stack

FOLDER = Path(__file__).parent / "screenshots"
WIDTHS = (390, 1440)
SCHEMES = ("light", "dark")
DEMO = "for the screenshots alone"


def main(folder: Path = FOLDER) -> int:
    """Take the pictures; the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hps-", dir="/tmp") as home:
        stack = Stack(Path(home), seeded=True, HOLDPOINT_DEMO_PASSWORD=DEMO)
        try:
            stack.wait()
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.flags())
                sent_back = make_history(sign_in(browser, stack.base, 1440, "light"))
                for width in WIDTHS:
                    for scheme in SCHEMES:
                        take(sign_in(browser, stack.base, width, scheme), folder, f"{width}-{scheme}", sent_back)
                browser.close()
        finally:
            stack.interrupt()
    return 0


def sign_in(browser: Browser, base: str, width: int, scheme: str) -> Page:
    """A page of ann's in a profile of its own."""
    context = browser.new_context(base_url=base, viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto("/")
    page.fill("[name=login]", "ann")
    page.fill("[name=password]", DEMO)
    page.press("[name=password]", "Enter")
    page.wait_for_selector(".gate-list, .empty")
    return page


def make_history(page: Page) -> str:
    """Approve one refund with an edit, send one back to be proposed again; the address of the latter's run."""
    open_gate(page, "Jonas Brandt")
    page.locator("input[data-type=money]").first.fill("30.00")
    decide(page, "edit")
    open_gate(page, "Käthe Mühlbauer")
    run = page.locator("main a[href^='/runs/']").first.get_attribute("href") or ""
    page.locator("label[data-choice=reject]").click()
    page.locator("input[name=then][value=back]").check()
    page.locator("#feedback").fill("Refund half of it.")
    decide(page, "reject")
    return run


def decide(page: Page, choice: str) -> None:
    """Choose, and press the one button that then shows."""
    page.locator(f"label[data-choice={choice}]").click()
    page.locator("button.commit:visible").click()
    page.wait_for_load_state("networkidle")


def open_gate(page: Page, name: str) -> None:
    """Open the gate that names a customer."""
    page.goto("/")
    page.locator(".gate-list a", has_text=name).first.click()
    page.wait_for_selector("#decision")


def take(page: Page, folder: Path, suffix: str, run: str) -> None:
    """Keep the three pages at one size and scheme."""
    page.screenshot(path=folder / f"inbox-{suffix}.png")
    open_gate(page, "Marit Ellery")
    page.screenshot(path=folder / f"gate-{suffix}.png", full_page=True)
    page.goto(run)
    page.wait_for_selector(".timeline")
    page.screenshot(path=folder / f"run-{suffix}.png", full_page=True)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
