"""`make screenshots`: takes pictures of the pages at three widths, light and dark, and prints the pages' faults.

Starts its own stack with the first inbox, and lets a reviewer work, so that the pages have a history to show. The
pictures are in .screenshots/; the few of docs/screenshots/, which the documents show, are replaced by the new ones.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.config.local.started_stack import Stack
from tests.harness import chromium
from tests.harness.browser_checks import by_axe, too_wide, watched
from tests.harness.session import ROOT

SHOWN = ROOT / "docs" / "screenshots"
FOLDER = ROOT / ".screenshots"
WIDTHS, SCHEMES = (390, 820, 1440), ("light", "dark")
DEMO = "for the screenshots alone"
PROPOSE, PAY = "Propose the refund", "Pay the refund"  # steps, by their titles
FORMS = "form[action$='/changes/']"
Pages = dict[str, tuple[str, Callable[[Page], object] | None]]  # address, and what is done there, by name
# Pages of which the browser complains, by the status that they come with.
REFUSED = {"missing": "404", "form-address": "405", "form-expired": "403"}


def work_on_refunds(page: Page) -> dict[str, str]:
    """Edit, fork and rewind a refund that was paid, and send another one back; return addresses by their pages."""
    open_gate(page, "Jonas Brandt")
    rewound = run_of(page)
    page.locator("input[data-type=money]").first.fill("30.00")
    send_decision(page, "edit")
    wait_for_words(page, rewound, "Completed")
    proposed = seq_of(page, PROPOSE)
    fork = f"{rewound}checkpoints/{proposed}/fork/"
    page.goto(fork)
    with page.expect_response("**/impacts/"):
        page.get_by_label("Title", exact=True).fill("Jonas Brandt: a voucher instead?")
    send_previewed(page, ".commit:visible")
    open_rewind(page, rewound, PROPOSE)
    with page.expect_response("**/impacts/"):
        page.get_by_label("Why").last.fill("He only keeps the shade. Offer him a third.")
    send_previewed(page, "#rewind .commit:visible")
    wait_for_words(page, rewound, "Held at “Review the refund”")
    comparison = f"{rewound}comparisons/?a=5&b={seq_of(page, PROPOSE)}"
    open_gate(page, "Käthe Mühlbauer")
    sent_back = run_of(page)
    page.locator("#decide label[data-choice=reject]").click()
    page.locator("input[name=then][value=back]").check()
    page.locator("#feedback").fill("Refund half of it.")
    send_decision(page, "reject")
    wait_for_words(page, sent_back, "Held at “Review the refund”")
    open_gate(page, "Käthe Mühlbauer")
    send_decision(page, "approve")
    wait_for_words(page, sent_back, "Completed")
    return {"run": rewound, "fork": fork, "comparison": comparison, "sent-back": sent_back}


def sign_in(browser: Browser, base: str, who: str, width: int = 1440, scheme: str = "light") -> BrowserContext:
    """Open a browser profile and sign in."""
    looks: Any = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    context = browser.new_context(base_url=base, **looks)
    page = context.new_page()
    page.goto("/")
    page.fill("[name=login]", who)
    page.fill("[name=password]", DEMO)
    page.press("[name=password]", "Enter")
    page.wait_for_selector(".gate-list, .empty")
    page.close()
    return context


def send_decision(page: Page, choice: str) -> None:
    """Choose, and press the button that then appears. If a gate has several actions, approve those not edited."""
    rest = page.locator("section.action:not(:has([data-ballot]:checked)) label[data-choice=approve]")
    if choice != "edit":
        page.locator(f"#decide label[data-choice={choice}]").click()
    elif page.locator("[data-ballot]").count():
        while rest.count():
            rest.first.click()
    else:
        page.locator("label[data-choice=edit]").click()
    with page.expect_navigation():
        page.locator("button.commit:visible").click()


def send_previewed(page: Page, button: str) -> None:
    """Send the order whose effects the page has just shown."""
    expect(page.locator("hp-order[data-stale]")).to_have_count(0)
    with page.expect_navigation():
        page.locator(button).click()


def open_gate(page: Page, name: str) -> None:
    """Open the gate whose title contains `name`."""
    page.goto("/")
    page.locator(".gate-list a", has_text=name).first.click()
    page.wait_for_selector("#decision")


def open_rewind(page: Page, run: str, step: str) -> None:
    """Open the panel of a rewind to before the newest execution of a step."""
    page.goto(run)
    page.goto(f"{run}?at={seq_of(page, step)}")
    page.get_by_text("Rewind the run…").click()
    page.get_by_label(f"Before “{step}”").check()


def run_of(page: Page) -> str:
    """Return the address of the run that waits at the gate on the page."""
    return (page.locator("main a[href^='/runs/']").first.get_attribute("href") or "").partition("?")[0]


def wait_for_words(page: Page, run: str, words: str) -> None:
    """Wait on the run's live page until its header contains `words`."""
    page.goto(run)
    expect(page.locator("#run-head")).to_contain_text(words, timeout=30_000)


def seq_of(page: Page, step: str) -> int:
    """Return the number of a step's newest checkpoint, from the timeline on the page."""
    row = page.locator("#timeline a[data-pick]", has_text=re.compile(rf"\d{step}$")).last
    return int(row.locator(".n").inner_text())


def edit_state(page: Page) -> None:
    with page.expect_response("**/impacts/"):
        page.locator("[name='state/ticket/reason']").select_option("goodwill")
    expect(page.locator("#order-panel .impact")).to_be_visible()
    expect(page.locator("hp-order[data-stale]")).to_have_count(0)


def confirm_reader(page: Page) -> None:
    """Confirm who the reader is, where the page asks for it."""
    if page.locator("[name=password]").count():
        page.fill("[name=password]", DEMO)
        with page.expect_navigation():
            page.get_by_role("button", name="Confirm", exact=True).click()


def open_palette(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("refund")
    expect(page.locator("dialog[open] a").first).to_be_visible()


def choose_gates(page: Page) -> None:
    """Select two gates, and open what approving them would do."""
    for box in page.locator("[name=gate]").all()[-2:]:
        box.check()
    page.locator("[data-bulk=a]").click()
    page.wait_for_url("**/inbox/bulk/")


def try_policy(page: Page) -> None:
    """Simulate a stricter version of the first policy."""
    open_first(page)
    page.locator("[name=quorum]").fill("2")
    page.locator("[name=_simulate]").click()
    expect(page.locator("#simulated")).to_be_visible()


def open_first(page: Page) -> None:
    """Open the first row of a list of the administration."""
    with page.expect_navigation():
        page.locator("#result_list tbody th a").first.click()


def send_expired_form(page: Page) -> None:
    page.locator(f"{FORMS} [name=csrfmiddlewaretoken]").evaluate("field => { field.value = 'x'.repeat(64) }")
    with page.expect_navigation():
        page.locator(FORMS).evaluate("form => form.submit()")


def sign_out(page: Page) -> None:
    page.context.clear_cookies()
    page.goto("/")


def without_acts(addresses: dict[str, str]) -> Pages:
    return {name: (address, None) for name, address in addresses.items()}


def list_pages(pages: dict[str, str]) -> dict[str, Pages]:
    """Return who is shown what: each page's address, and what is done on it before the picture is taken."""
    plain = {
        "inbox": "/", "inbox-all": "/?queue=all", "inbox-decided": "/?queue=by_me", "inbox-empty": "/?queue=snoozed",
        "views": "/inbox/views/", "runs": "/runs/", "agents": "/agents/", "agent": "/agents/refunds/",
        "insights": "/insights/", "insights-gates": "/insights/gates/", "tokens": "/tokens/", "device": "/device/",
        "profile": "/account/", "security": "/account/security/", "sessions": "/account/sessions/",
        "change-password": "/accounts/password/change/", "confirm": "/accounts/reauthenticate/",
        "away": "/account/away/", "notifications": "/account/notifications/", "offline": "/offline/",
        "missing": "/gates/999999/", "form-address": "/account/changes/",
    }  # fmt: skip
    administration = {
        "audit": "/audit/", "administration": "/admin/", "policies": "/admin/approvals/policy/",
        "policy": "/admin/approvals/policy/add/",
        "calendar": "/admin/approvals/calendar/add/", "chat-channel": "/admin/approvals/channeladdress/add/",
        "messages": "/admin/approvals/message/", "channel-states": "/admin/approvals/channelstate/",
        "retention": "/admin/checkpoints/retentionpolicy/", "webhooks": "/admin/approvals/webhook/",
    }  # fmt: skip
    sent_back = pages.pop("sent-back")
    return {
        "ann": without_acts(plain | pages)
        | {
            "gate": ("/", lambda page: open_gate(page, "Marit Ellery")),
            "actions": ("/", lambda page: open_gate(page, "Restock")),
            "schedules": ("/", lambda page: open_gate(page, "Machine 14 is down")),
            "rewind": (sent_back, lambda page: open_rewind(page, sent_back, PAY)),
            "edit": (f"{sent_back}checkpoints/4/edit/", edit_state),
            "bulk": ("/?agent=refunds&risk=low", choose_gates),
            "app": ("/account/security/app/", confirm_reader),
            "passkey": ("/account/security/passkeys/", confirm_reader),
            "palette": ("/", open_palette),
            "keys": ("/", lambda page: page.keyboard.press("?")),
            "form-expired": ("/account/", send_expired_form),
        },
        "admin": without_acts(administration)
        | {
            "policy-tried": ("/admin/approvals/policy/", try_policy),
            "account-of-another": ("/admin/auth/user/", open_first),
            "sign-in": ("/", sign_out),  # as those after it need
            "forgotten": ("/accounts/password/reset/", None),
            "forgotten-sent": ("/accounts/password/reset/done/", None),
        },
    }


def save_picture(page: Page, file: Path) -> None:
    """Save the window, or the whole of a page that is longer, as it is in a window of that height."""
    width, height = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    if not page.locator("dialog[open]").count() and not file.name.startswith("inbox"):
        page.set_viewport_size({"width": width, "height": height})
    Image.open(io.BytesIO(page.screenshot())).save(file, "WEBP", quality=80, method=6)
    page.set_viewport_size({"width": width, "height": 900})


def take_pictures(browser: Browser, base: str) -> list[str]:
    """Save every page at each width and scheme; return their faults."""
    faults: list[str] = []
    context = sign_in(browser, base, "ann")
    pages = list_pages(work_on_refunds(context.new_page()))
    context.close()
    for who, width, scheme in ((who, width, scheme) for who in pages for width in WIDTHS for scheme in SCHEMES):
        context = sign_in(browser, base, who, width, scheme)
        page = context.new_page()
        complaints = watched(page)
        for name, (address, act) in pages[who].items():
            page.goto(address)
            if act is not None:
                act(page)
            save_picture(page, FOLDER / f"{name}-{width}-{scheme}.webp")
            unexpected = [words for words in complaints if REFUSED.get(name, "none") not in words]
            faults += [f"{name}, {width} {scheme}: {words}" for words in unexpected + by_axe(page) + too_wide(page)]
            complaints.clear()
        context.close()
    return faults


def main() -> int:
    """Take the pictures; return 1 if a page has a fault."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hps-", dir="/tmp") as home:
        stack = Stack(Path(home), seeded=True, HOLDPOINT_DEMO_PASSWORD=DEMO)
        try:
            stack.wait()
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.flags())
                faults = take_pictures(browser, f"http://localhost:{stack.port}")  # passkeys are bound to names
                browser.close()
        finally:
            stack.interrupt()
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    for picture in SHOWN.iterdir():
        shutil.copyfile(FOLDER / picture.name, picture)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
