"""`make screenshots`: takes pictures of every page at three widths, light and dark, and reports the pages' faults.

Starts its own stack with the first inbox, lets ann and the administrator work, and saves the pictures in
docs/screenshots/ with a report: axe-core's findings on each page, complaints of the browser's console and of the
content policy, and pages that are wider than their window.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.config.local.started_stack import Stack
from tests.harness import chromium
from tests.harness.browser_checks import check, watched

from . import acting, outside, pages, story
from .story import History

FOLDER = Path(__file__).parent.parent / "screenshots"
WIDTHS = (390, 820, 1440)
SCHEMES = ("light", "dark")
QUALITY = 80


def main(folder: Path = FOLDER) -> int:
    """Take the pictures; return 1 if a page has a fault."""
    folder.mkdir(parents=True, exist_ok=True)
    faults: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="hps-", dir="/tmp") as home, outside.model(Path(home) / "desk") as model:
        stack = Stack(Path(home), seeded=True, HOLDPOINT_DEMO_PASSWORD=acting.DEMO, **model)
        try:
            stack.wait()
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.flags())
                history = story.make(browser, stack)
                for who, shown in (("ann", pages.ANN), ("admin", pages.ADMIN)):
                    for width in WIDTHS:
                        for scheme in SCHEMES:
                            faults |= take(browser, stack.base, folder, who, shown, width, scheme, history)
                browser.close()
        finally:
            stack.interrupt()
    (folder / "report.md").write_text(report(faults))
    return int(any(faults.values()))


def take(
    browser: Browser,
    base: str,
    folder: Path,
    who: str,
    shown: dict[str, pages.Show],
    width: int,
    scheme: str,
    history: History,
) -> dict[str, list[str]]:
    """Save one person's pages at one size and scheme; return the faults of each by its name."""
    context = acting.enter(browser, base, width, scheme, who=who)
    page = context.new_page()
    said = watched(page)
    faults: dict[str, list[str]] = {}
    for name, show in shown.items():
        called = f"{name}-{width}-{scheme}"
        part = show(page, history)
        keep(page, folder / f"{called}.webp", part, width)
        faults[called] = [fault for fault in check(page, "", said) if not _expected(name, fault)]
    context.close()
    return faults


def _expected(name: str, fault: str) -> bool:
    return name == "missing" and "404" in fault


def keep(page: Page, file: Path, part: str, width: int) -> None:
    """Save a part of a page, or the window if `part` is empty.

    A part is taken in a window as tall as the page, so that fixed elements are at its edges and nothing scrolls.
    """
    if not part:
        picture = page.screenshot()
    else:
        page.set_viewport_size({"width": width, "height": page.evaluate("document.documentElement.scrollHeight")})
        picture = page.locator(part).screenshot()
        page.set_viewport_size({"width": width, "height": 900})
    Image.open(io.BytesIO(picture)).save(file, "WEBP", quality=QUALITY, method=6)


def report(faults: dict[str, list[str]]) -> str:
    """Format the faults, page by page."""
    names = list(dict.fromkeys(called.rsplit("-", 2)[0] for called in faults))
    columns = [f"{width}-{scheme}" for width in WIDTHS for scheme in SCHEMES]
    rows = [
        f"| {name} | " + " | ".join(str(len(faults.get(f"{name}-{column}", []))) for column in columns) + " |"
        for name in names
    ]
    found = [f"- {called}: {fault}" for called, each in faults.items() for fault in each]
    heads = " | ".join(column.replace("-", " px, ") for column in columns)
    return "\n".join(
        [
            "# What is wrong with the pages",
            "",
            "Written by `make screenshots`: faults that axe-core finds (WCAG 2.2 AA and its best practices), what the",
            "browser complains about, refusals of the content policy among it, and pages wider than their window.",
            "",
            f"| page | {heads} |",
            "|---|" + "---|" * len(columns),
            *rows,
            "",
            *(found or [f"None on {len(faults)} pictures."]),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
