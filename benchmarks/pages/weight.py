"""Measures the bytes of each page's first load, and its layout shift once it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.marks import mark
from benchmarks.pages.waiting_refunds import AGENTS, wait_at_gates
from benchmarks.parts.people import make_person, make_team, session_of
from benchmarks.parts.scratch import Scratch

if TYPE_CHECKING:
    from playwright.sync_api import Browser

AIM_KB, AIM_SHIFT = 100.0, 0.0
SETTLED = 1500  # milliseconds after the load event, for the socket and for fragments

SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
}"""


def main() -> None:
    """Print each page's weight, by kind, and its layout shift, at a phone's width and a desk's."""
    with Scratch(AGENTS) as scratch:
        scratch.sandbox()
        scratch.worker()
        ann = make_person("ann", make_team())
        run_id, gate_id = wait_at_gates(ann, 1)[0]
        _, base = scratch.web()
        addresses = {"inbox": "/", "gate": f"/gates/{gate_id}/", "run": f"/runs/{run_id}/"}
        addresses |= {"runs": "/runs/", "agents": "/agents/", "audit": "/audit/"}
        print(f"{'':<8} {'width':>5}   HTML    CSS     JS  other    all kB  requests  shift")
        session, looks = session_of(ann), [(name, width) for name in addresses for width in (390, 1440)]
        with browser() as opened:
            found = {look: _look(opened, base, session, look, addresses[look[0]]) for look in looks}
    name, width = max(found, key=lambda look: found[look][0])
    mark("heaviest first load", found[name, width][0], "kB", most=AIM_KB, beside={"page": f"{name} at {width} px"})
    mark("largest shift of a layout", max(shift for _, shift in found.values()), most=AIM_SHIFT)


def browser() -> Any:
    """Open the browser that the tests use, as a context."""
    from contextlib import contextmanager

    from playwright.sync_api import sync_playwright

    from tests.harness import chromium

    path = chromium.find()  # it may ask Playwright, of which one runs at a time

    @contextmanager
    def opened() -> Any:
        with sync_playwright() as playwright:
            yield playwright.chromium.launch(executable_path=path, args=chromium.flags())

    return opened()


def _look(browser: Browser, base: str, session: str, look: tuple[str, int], address: str) -> tuple[float, float]:
    """Load a page at a width; print and return its kB and its shift."""
    name, width = look
    context = browser.new_context(timezone_id="Europe/Berlin", viewport={"width": width, "height": 900})
    # The sign-in page has sent the server the time zone before any other page is seen.
    for cookie, value in (("sessionid", session), ("hp-zone", "Europe/Berlin")):
        context.add_cookies([{"name": cookie, "value": value, "url": base}])
    page = context.new_page()
    page.add_init_script(f"({SHIFTS})()")
    wire, kinds, sizes = (
        context.new_cdp_session(page),
        {},
        dict.fromkeys(("Document", "Stylesheet", "Script", "other"), 0.0),
    )
    wire.send("Network.enable")
    wire.on("Network.responseReceived", lambda event: kinds.update({event["requestId"]: event["type"]}))

    def finished(event: dict[str, Any]) -> None:
        kind = kinds.get(event["requestId"], "other")
        sizes[kind if kind in sizes else "other"] += event["encodedDataLength"] / 1000

    wire.on("Network.loadingFinished", finished)
    page.goto(base + address)
    page.wait_for_timeout(SETTLED)
    shift, whole = float(page.evaluate("window.shifted")), sum(sizes.values())
    context.close()
    parts = "".join(f"{size:7.1f}" for size in sizes.values())
    print(f"{name:<8} {width:5d} {parts}  {whole:8.1f}  {len(kinds):8d}  {shift:.4f}", flush=True)
    return whole, shift


if __name__ == "__main__":
    main()
