"""`make screenshots`: the pages as a new user meets them, narrow and wide, light and dark.

Starts a whole stack of its own with the first inbox, signs in, and keeps the pictures in docs/screenshots/. On the way
ann makes a history to see: she edits and approves one refund, which is paid; forks that run and rewinds it to have
its proposal made again; and sends another refund back.
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.harness import chromium
from tests.stack.running import Stack

FOLDER = Path(__file__).parent / "screenshots"
WIDTHS = (390, 1440)
SCHEMES = ("light", "dark")
DEMO = "for the screenshots alone"


@dataclass(frozen=True)
class History:
    """Addresses of two runs: one that was paid and then rewound, one that was sent back and is to be rewound."""

    rewound: str
    sent_back: str


def main(folder: Path = FOLDER) -> int:
    """Take the pictures; the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hps-", dir="/tmp") as home:
        stack = Stack(Path(home), seeded=True, HOLDPOINT_DEMO_PASSWORD=DEMO)
        try:
            stack.wait()
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.flags())
                history = make_history(sign_in(browser, stack.base, 1440, "light"))
                for width in WIDTHS:
                    for scheme in SCHEMES:
                        take(sign_in(browser, stack.base, width, scheme), folder, f"{width}-{scheme}", history)
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


def make_history(page: Page) -> History:
    """What ann does before the pictures are taken."""
    paid = approve(page, "Jonas Brandt", "30.00")
    fork(page, f"{paid}checkpoints/{seq_of(page, 'propose')}/fork/", "Jonas Brandt: a voucher instead?")
    open_rewind(page, paid, "propose")
    with page.expect_response("**/impacts/"):
        page.get_by_label("Why").last.fill("He only keeps the shade. Offer him a third.")
    expect(page.locator("hp-order[data-stale]")).to_have_count(0)
    page.locator("#rewind .commit:visible").click()
    page.wait_for_load_state("networkidle")
    until(page, paid, "Held at review")
    open_gate(page, "Käthe Mühlbauer")
    sent_back = run_of(page)
    page.locator("#decide label[data-choice=reject]").click()
    page.locator("input[name=then][value=back]").check()
    page.locator("#feedback").fill("Refund half of it.")
    decide(page, "reject")
    until(page, sent_back, "Held at review")
    open_gate(page, "Käthe Mühlbauer")
    decide(page, "approve")
    until(page, sent_back, "Completed")
    return History(paid, sent_back)


def approve(page: Page, name: str, amount: str) -> str:
    """Approve a refund with another amount and wait until it is paid; the address of its run."""
    open_gate(page, name)
    run = run_of(page)
    page.locator("input[data-type=money]").first.fill(amount)
    decide(page, "edit")
    until(page, run, "Completed")
    return run


def decide(page: Page, choice: str) -> None:
    """Choose, and press the one button that then shows. Where several are asked, the rest of an edit is approved."""
    rest = page.locator("section.action:not(:has([data-ballot]:checked)) label[data-choice=approve]")
    if choice != "edit":
        page.locator(f"#decide label[data-choice={choice}]").click()
    elif page.locator("[data-ballot]").count():
        while rest.count():
            rest.first.click()
    else:
        page.locator("label[data-choice=edit]").click()
    page.locator("button.commit:visible").click()
    page.wait_for_load_state("networkidle")


def open_gate(page: Page, name: str) -> None:
    """Open the gate whose title says that."""
    page.goto("/")
    page.locator(".gate-list a", has_text=name).first.click()
    page.wait_for_selector("#decision")


def run_of(page: Page) -> str:
    """The address of the run that the gate on the page holds."""
    found = page.locator("main a[href^='/runs/']").first.get_attribute("href") or ""
    return found.partition("?")[0]


def until(page: Page, run: str, words: str) -> None:
    """Wait on the run's page, which is live, until its head says that."""
    page.goto(run)
    expect(page.locator("#run-head")).to_contain_text(words, timeout=30_000)


def seq_of(page: Page, step: str) -> int:
    """The number of the newest checkpoint of a step, from the timeline on the page."""
    row = page.locator("#timeline a[data-pick]", has_text=re.compile(rf"\d{step}$")).last
    return int(row.locator(".n").inner_text())


def fork(page: Page, address: str, title: str) -> None:
    """Fork a run."""
    page.goto(address)
    with page.expect_response("**/impacts/"):
        page.get_by_label("Title").fill(title)
    expect(page.locator("hp-order[data-stale]")).to_have_count(0)
    page.locator(".commit:visible").click()
    page.wait_for_load_state("networkidle")


def open_rewind(page: Page, run: str, step: str) -> None:
    """Open the panel of a rewind to before the newest execution of a step."""
    page.goto(run)
    page.goto(f"{run}?at={seq_of(page, step)}")
    page.get_by_text("Rewind the run…").click()
    page.get_by_label(f"Before {step}").check()


def take(page: Page, folder: Path, suffix: str, history: History) -> None:
    """Keep every page at one size and scheme."""

    size = page.viewport_size or {"width": 0, "height": 0}

    def keep(name: str, part: str = "body") -> None:
        # In a window as tall as the page, so that what is fixed to its edges stands there and nothing scrolls inside.
        page.set_viewport_size({**size, "height": page.evaluate("document.documentElement.scrollHeight")})
        page.locator(part).screenshot(path=folder / f"{name}-{suffix}.png")
        page.set_viewport_size(size)

    page.screenshot(path=folder / f"inbox-{suffix}.png")
    open_gate(page, "Marit Ellery")
    keep("gate")
    open_gate(page, "Machine 14 is down")
    keep("schedules")
    page.goto(history.rewound)
    keep("run")
    newest = seq_of(page, "propose")
    page.goto(f"{history.rewound}comparisons/?a=5&b={newest}")
    keep("comparison")
    open_rewind(page, history.sent_back, "pay")
    keep("rewind", "#inspect")
    page.goto(f"{history.sent_back}checkpoints/4/edit/")
    ticket = page.locator("[name='field.ticket']")
    with page.expect_response("**/impacts/"):
        ticket.fill(ticket.input_value().replace("never arrived", "faulty"))
    expect(page.locator("#order-panel .impact")).to_be_visible()
    expect(page.locator("hp-order[data-stale]")).to_have_count(0)
    keep("edit")


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
