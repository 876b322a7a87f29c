"""`make screenshots`: takes pictures of every page at three widths, light and dark, and reports the pages' faults.

Starts its own stack with the first inbox, lets ann and the administrator work, and saves the pictures in .screenshots/
with a report: axe-core's findings on each page, complaints of the browser's console and of the content policy, pages
that are wider than their window, and how much a first visit loads. A mail that the stack sent is drawn as strict mail
clients do. The few pictures of docs/screenshots/, which the documents show, are replaced by the new ones.
"""

from __future__ import annotations

import email
import io
import shutil
import sys
import tempfile
from collections.abc import Mapping
from email import policy
from email.message import EmailMessage
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.config.local.started_stack import Stack
from tests.harness import chromium
from tests.harness.browser_checks import by_axe, too_wide, watched
from tests.harness.mail_client import drawn
from tests.harness.session import ROOT

from . import acting, outside, pages, people, story
from .story import History

SHOWN = ROOT / "docs" / "screenshots"
FOLDER = ROOT / ".screenshots"
WIDTHS = (390, 820, 1440)
SCHEMES = ("light", "dark")
QUALITY = 80
POLICY = "Content Security Policy"  # in each complaint of a browser about it
# Compressed, without headers, of all that a page has loaded, whether it was in the browser's cache or not.
WEIGHT = """() => {
  const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return [all.reduce((sum, load) => sum + load.encodedBodySize, 0) / 1000, all.length];
}"""
KINDS = ("axe", "content policy", "console", "width")
Faults = list[tuple[str, str, str, str]]  # page, look, kind, words
Weights = dict[str, tuple[float, int]]


def main(folder: Path = FOLDER) -> int:
    """Take the pictures; return 1 if a page has a fault."""
    folder.mkdir(parents=True, exist_ok=True)
    faults: Faults = []
    weights: Weights = {}
    with tempfile.TemporaryDirectory(prefix="hps-", dir="/tmp") as home, outside.model(Path(home) / "desk") as model:
        stack = Stack(Path(home), seeded=True, HOLDPOINT_DEMO_PASSWORD=acting.DEMO, **model | people.PROVIDER)
        try:
            stack.wait()
            stack.base = f"http://localhost:{stack.port}"  # passkeys are bound to names
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.flags())
                history = story.make(browser, stack)
                for who, shown in (("ann", pages.ANN), ("mira", pages.MIRA), ("admin", pages.ADMIN)):
                    for width in WIDTHS:
                        for scheme in SCHEMES:
                            if who == "mira":
                                context = people.signed_in(browser, stack, history.people, width, scheme)
                            else:
                                context = acting.sign_in_browser(browser, stack.base, width, scheme, who=who)
                            faults += take(context, folder, shown, f"{width}-{scheme}", history, weights)
                            if who == "mira":  # confirming who she is gave her session another key
                                history.people.mira.update(context.storage_state())
                            context.close()
                faults += take_mail(browser, Path(stack.home) / "mail", folder)
                browser.close()
        finally:
            stack.interrupt()
    (folder / "report.md").write_text(report(faults, weights))
    if folder == FOLDER:
        for picture in SHOWN.iterdir():
            shutil.copyfile(folder / picture.name, picture)
    return int(bool(faults))


def take(
    context: BrowserContext,
    folder: Path,
    shown: Mapping[str, pages.Show],
    look: str,
    history: History,
    weights: Weights,
) -> Faults:
    """Save one person's pages at one size and scheme; return their faults, and note the weight of each."""
    page = context.new_page()
    complaints = watched(page)
    faults: Faults = []
    for name, show in shown.items():
        part = show(page, history)
        keep(page, folder / f"{name}-{look}.webp", part)
        kilobytes, requests = page.evaluate(WEIGHT)
        weights[name] = max(weights.get(name, (0.0, 0)), (kilobytes, requests))
        unexpected = [words for words in complaints if not _expected(name, words)]
        faults += [(name, look, "content policy" if POLICY in words else "console", words) for words in unexpected]
        faults += [(name, look, "axe", words) for words in by_axe(page)]
        faults += [(name, look, "width", words) for words in too_wide(page)]
        complaints.clear()
    return faults


def take_mail(browser: Browser, sent: Path, folder: Path) -> Faults:
    """Save a mail that asks for a decision, as clients draw it that run and load nothing; it must ask for nothing."""
    mails = [email.message_from_bytes(file.read_bytes(), policy=policy.default) for file in sorted(sent.iterdir())]
    mail = next(mail for mail in mails if isinstance(mail, EmailMessage) and " · gate " in str(mail["Subject"]))

    def look(page: Page, width: int, scheme: str) -> None:
        save(page.screenshot(full_page=True), folder / f"mail-{width}-{scheme}.webp")

    return [("mail", "", "content policy", f"tried to load {address}") for address in drawn(browser, mail, look)]


def _expected(name: str, fault: str) -> bool:
    return name in pages.REFUSED and pages.REFUSED[name] in fault


def keep(page: Page, file: Path, part: str) -> None:
    """Save a part of a page, or the window if `part` is empty.

    A part is taken in a window as tall as the page, so that fixed elements are at its edges and nothing scrolls.
    """
    if not part:
        save(page.screenshot(), file)
        return
    width, height = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    page.set_viewport_size({"width": width, "height": height})
    save(page.locator(part).screenshot(), file)
    page.set_viewport_size({"width": width, "height": 900})


def save(picture: bytes, file: Path) -> None:
    """Save a picture."""
    Image.open(io.BytesIO(picture)).save(file, "WEBP", quality=QUALITY, method=6)


def report(faults: Faults, weights: Weights) -> str:
    """Format the faults and the weight, page by page."""
    rows = []
    for name, (kilobytes, requests) in weights.items():
        counts = [sum((page, kind) == (name, column) for page, _, kind, _ in faults) for column in KINDS]
        rows.append(f"| {name} | {kilobytes:.0f} | {requests} | {' | '.join(map(str, counts))} |")
    listed = [f"- {page}, {look}, {kind}: {words}" for page, look, kind, words in faults]
    looks = len(WIDTHS) * len(SCHEMES)
    return "\n".join(
        [
            "# What is wrong with the pages",
            "",
            f"Written by `make screenshots`, which looks at each page {looks} times: {', '.join(map(str, WIDTHS))}",
            "pixels wide, light and dark. Faults: what axe-core finds (WCAG 2.2 AA and its best practices), refusals",
            "of the content policy, what else the browser complains about, and text that is wider than the window.",
            "Before them, what a first visit loads at most: kilobytes, compressed, and requests.",
            "",
            f"| page | kB | requests | {' | '.join(KINDS)} |",
            "|---|" + "---:|" * (2 + len(KINDS)),
            *rows,
            "",
            *(listed or [f"No fault on {len(weights)} pages."]),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
