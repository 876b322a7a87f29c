"""The story: what people do before the pictures are taken, so that the pages have a history to show.

Ann edits and approves one refund, which is paid; forks that run and rewinds it to have its proposal made again; and
sends another refund back. The administrator starts a dry run of retention.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from playwright.sync_api import Browser, Page, expect

from tests.config.local.started_stack import Stack

from . import outside, people
from .acting import DEMO, make_decision, open_gate, run_of, send_form, seq_of, sign_in_browser, wait_for_words
from .outside import Outside
from .people import People

PROPOSE, PAY = "Propose the refund", "Pay the refund"  # steps, by their titles


@dataclass(frozen=True)
class History:
    """Addresses of the story: a run that was paid and then rewound, one that was sent back, a dry run."""

    rewound: str
    sent_back: str
    proposed: int  # the number of a checkpoint of `rewound`
    dry_run: str
    outside: Outside
    people: People


def make(browser: Browser, stack: Stack) -> History:
    """Play the story: ann, the administrator, external programs, and several people."""
    ann, admin = (sign_in_browser(browser, stack.base, 1440, "light", who=who) for who in ("ann", "admin"))
    rewound, sent_back, proposed = _refunds(ann.new_page())
    dry_run = _retention(admin.new_page())
    for context in (ann, admin):
        context.close()
    asked = outside.make(browser, stack)
    return History(rewound, sent_back, proposed, dry_run, asked, people.make(browser, stack, asked.together))


def _retention(page: Page) -> str:
    """Set a strict retention policy and start a dry run; return its address."""
    page.goto("/accounts/reauthenticate/?next=/admin/checkpoints/retentionpolicy/add/")
    page.fill("[name=password]", DEMO)
    page.press("[name=password]", "Enter")
    page.locator("[name=keep_last]").fill("2")
    page.locator("[name=_save]").click()
    page.goto("/admin/checkpoints/retentionpolicy/")
    page.get_by_role("button", name=re.compile("dry run", re.IGNORECASE)).first.click()
    page.wait_for_url("**/prune/*/change/")
    return page.url


def _refunds(page: Page) -> tuple[str, str, int]:
    paid = approve(page, "Jonas Brandt", "30.00")
    proposed = seq_of(page, PROPOSE)
    fork(page, f"{paid}checkpoints/{proposed}/fork/", "Jonas Brandt: a voucher instead?")
    open_rewind(page, paid, PROPOSE)
    with page.expect_response("**/impacts/"):
        page.get_by_label("Why").last.fill("He only keeps the shade. Offer him a third.")
    expect(page.locator("hp-order[data-stale]")).to_have_count(0)
    send_form(page, "#rewind .commit:visible")
    wait_for_words(page, paid, "Held at “Review the refund”")
    open_gate(page, "Käthe Mühlbauer")
    sent_back = run_of(page)
    page.locator("#decide label[data-choice=reject]").click()
    page.locator("input[name=then][value=back]").check()
    page.locator("#feedback").fill("Refund half of it.")
    make_decision(page, "reject")
    wait_for_words(page, sent_back, "Held at “Review the refund”")
    open_gate(page, "Käthe Mühlbauer")
    make_decision(page, "approve")
    wait_for_words(page, sent_back, "Completed")
    return paid, sent_back, proposed


def approve(page: Page, name: str, amount: str) -> str:
    """Approve a refund with another amount and wait until it is paid; return the address of its run."""
    open_gate(page, name)
    run = run_of(page)
    page.locator("input[data-type=money]").first.fill(amount)
    make_decision(page, "edit")
    wait_for_words(page, run, "Completed")
    return run


def fork(page: Page, address: str, title: str) -> None:
    """Fork a run."""
    page.goto(address)
    with page.expect_response("**/impacts/"):
        page.get_by_label("Title", exact=True).fill(title)
    expect(page.locator("hp-order[data-stale]")).to_have_count(0)
    send_form(page, ".commit:visible")


def open_rewind(page: Page, run: str, step: str) -> None:
    """Open the panel of a rewind to before the newest execution of a step."""
    page.goto(run)
    page.goto(f"{run}?at={seq_of(page, step)}")
    page.get_by_text("Rewind the run…").click()
    page.get_by_label(f"Before “{step}”").check()
