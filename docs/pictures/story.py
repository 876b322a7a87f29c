"""What ann does before the pictures are taken, so that there is a history to see.

She edits and approves one refund, which is paid; forks that run and rewinds it to have its proposal made again; sends
another refund back; names and notes a checkpoint of it; and has retention look what it would remove.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from playwright.sync_api import Browser, BrowserContext, Page, expect

DEMO = "for the screenshots alone"


@dataclass(frozen=True)
class History:
    """Addresses: a run that was paid and then rewound, one that was sent back and is to be rewound, a dry run."""

    rewound: str
    sent_back: str
    proposed: int  # the number of a checkpoint of the first
    dry_run: str


def enter(browser: Browser, base: str, width: int, scheme: str, *, who: str = "ann") -> BrowserContext:
    """A profile of its own, signed in."""
    context = browser.new_context(base_url=base, viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto("/")
    page.fill("[name=login]", who)
    page.fill("[name=password]", DEMO)
    page.press("[name=password]", "Enter")
    page.wait_for_selector(".gate-list, .empty")
    page.close()
    return context


def make(browser: Browser, base: str) -> History:
    """What ann and the administrator do before the pictures are taken."""
    ann, admin = (enter(browser, base, 1440, "light", who=who) for who in ("ann", "admin"))
    rewound, sent_back, proposed = _refunds(ann.new_page())
    dry_run = _retention(admin.new_page())
    for context in (ann, admin):
        context.close()
    return History(rewound, sent_back, proposed, dry_run)


def _retention(page: Page) -> str:
    """Keep little of the finished runs; the address of what would go."""
    page.goto("/admin/checkpoints/retentionpolicy/add/")
    page.locator("[name=keep_last]").fill("2")
    page.locator("[name=_save]").click()
    page.goto("/admin/checkpoints/retentionpolicy/")
    page.get_by_role("button", name=re.compile("dry run", re.IGNORECASE)).first.click()
    page.wait_for_url("**/prune/*/change/")
    return page.url


def _refunds(page: Page) -> tuple[str, str, int]:
    paid = approve(page, "Jonas Brandt", "30.00")
    proposed = seq_of(page, "propose")
    fork(page, f"{paid}checkpoints/{proposed}/fork/", "Jonas Brandt: a voucher instead?")
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
    return paid, sent_back, proposed


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
        page.get_by_label("Title", exact=True).fill(title)
    expect(page.locator("hp-order[data-stale]")).to_have_count(0)
    page.locator(".commit:visible").click()
    page.wait_for_load_state("networkidle")


def open_rewind(page: Page, run: str, step: str) -> None:
    """Open the panel of a rewind to before the newest execution of a step."""
    page.goto(run)
    page.goto(f"{run}?at={seq_of(page, step)}")
    page.get_by_text("Rewind the run…").click()
    page.get_by_label(f"Before {step}").check()
