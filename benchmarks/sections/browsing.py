"""Measures pages in a real browser: the bytes of a first load, and how fast people clear their inbox.

The keyboard session opens the first gate and goes on to the next one by itself after each decision. It approves with
`a`, rejects every tenth with `r` and a reason, ticks the second look where it is asked, and sends with Ctrl Enter. The
bulk decision is sent as its page sends it: the list of gates first, then the order.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, sync_playwright

from approvals.models import Decision
from benchmarks.driving import bring_refunds_to_gates, make_ann, team_of
from benchmarks.figures import Figure
from benchmarks.measuring import processor_seconds
from benchmarks.scratch import Scratch
from tests.factories import make_card, make_gate, make_run
from tests.factories.runs import make_plan, make_spec
from tests.harness import chromium
from tests.harness.services import Service
from tests.harness.signed_in_clients import session_of

SETTLED = 1500  # milliseconds after the load event, for the socket and for fragments
REJECTED = 10  # every tenth
SHIFTS = """
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
"""


@contextmanager
def _open_browser() -> Iterator[Browser]:
    """Open the browser that the tests use."""
    path = chromium.find()  # it may ask Playwright, of which one runs at a time
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=chromium.flags())


def _open_page(browser: Browser, base: str, session: str, width: int) -> Page:
    """Open a page of somebody who is signed in; the sign-in page has sent the server the time zone."""
    context = browser.new_context(timezone_id="Europe/Berlin", viewport={"width": width, "height": 900})
    for cookie, value in (("sessionid", session), ("hp-zone", "Europe/Berlin")):
        context.add_cookies([{"name": cookie, "value": value, "url": base}])
    return context.new_page()


def measure_weight(scratch: Scratch, gates: int) -> Iterator[Figure]:
    """Measure each page's first load, at a phone's width and a desk's: everything over the wire, headers included."""
    ann = make_ann()
    run, gate = bring_refunds_to_gates(scratch, ann, gates)[0]
    _, base = scratch.start_web()
    addresses = {"inbox": "/", "gate": f"/gates/{gate}/", "run": f"/runs/{run}/", "audit": "/audit/"}
    session, shift, weights = session_of(ann), 0.0, dict[str, float]()
    with _open_browser() as browser:
        for name, address in addresses.items():
            for width in (390, 1440):
                weight, moved = _load_page(_open_page(browser, base, session, width), base + address)
                weights[name], shift = max(weight, weights.get(name, 0.0)), max(shift, moved)
    parts = {name: f"{weight:.1f} kB" for name, weight in weights.items()}
    yield Figure("heaviest first load", max(weights.values()), "kB", most=100, beside=parts)
    yield Figure("largest shift of a layout", shift, most=0)


def _load_page(page: Page, url: str) -> tuple[float, float]:
    """Return the kB of a page's load, and its layout shift."""
    page.add_init_script(SHIFTS)
    wire, sizes = page.context.new_cdp_session(page), list[float]()
    wire.send("Network.enable")
    wire.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"] / 1000))
    page.goto(url)
    page.wait_for_timeout(SETTLED)
    shift = float(page.evaluate("window.shifted"))
    page.context.close()
    return sum(sizes), shift


def measure_clearing(scratch: Scratch, count: int) -> Iterator[Figure]:
    """Measure a bulk decision of twice as many gates, and so many gates cleared one by one with the keyboard."""
    ann = make_ann()
    web, base = scratch.start_web()
    yield _decide_together(ann, web, base, _make_gates(ann, count * 2, risks=("low",)))
    gates = _make_gates(ann, count, risks=("low", "medium", "high", "critical"))
    with _open_browser() as browser:
        took, slowest = _clear_gates(_open_page(browser, base, session_of(ann), 1440), base, count)
    _check_decisions(gates)
    parts = {"gates": str(count), "slowest": f"{slowest * 1000:.0f} ms"}
    yield Figure("cleared with the keyboard", count / took, "gates a second", least=3, beside=parts)


def _make_gates(ann: User, count: int, *, risks: Sequence[str]) -> list[int]:
    """Open so many gates in Ann's team, of one agent for each risk."""
    team, gates, plans = team_of(ann), [], [make_plan(make_spec()) for _ in risks]
    for number in range(count):
        at = number % len(risks)
        card = make_card(title=f"Refund order {20_000 + number}", risk=risks[at], amount=f"€{number + 1}.00")
        gates.append(make_gate(team=team, run=make_run(team=team, plan=plans[at]), card=card).pk)
    return gates


def _clear_gates(page: Page, base: str, count: int) -> tuple[float, float]:
    """Decide the first gate and each that follows; return the seconds of all, and of the slowest."""
    page.goto(base + "/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/gates/*/**")
    began, times = time.perf_counter(), []
    for number in range(1, count + 1):
        sent, here = time.perf_counter(), page.url
        page.wait_for_selector("#decision [data-commit]", state="attached")
        if number % REJECTED:
            page.keyboard.press("a")
            look = page.locator(".second-look:visible [name=second_look]")
            if look.count():
                look.check()
        else:
            page.keyboard.press("r")
            page.keyboard.type("No.")
        page.keyboard.press("Control+Enter")
        if number < count:
            page.wait_for_function("here => location.pathname !== here", arg=urlsplit(here).path)
        else:
            page.wait_for_selector("#decision", state="detached")
        times.append(time.perf_counter() - sent)
    return time.perf_counter() - began, max(times)


def _decide_together(ann: User, web: Service, base: str, gates: list[int]) -> Figure:
    """List the gates, decide them together, and send the same again."""
    cookies = {"sessionid": session_of(ann), "csrftoken": "c" * 32}
    with httpx.Client(base_url=base, cookies=cookies, timeout=60) as client:
        client.headers.update({"accept": "text/html", "referer": base, "origin": base, "x-csrftoken": "c" * 32})
        began = time.perf_counter()
        page = client.post("/inbox/bulk/", data={"gate": gates, "verdict": "approve"}).raise_for_status().text
        listed = time.perf_counter() - began
        form: dict[str, Any] = dict(re.findall(r'name="(key)" value="([^"]+)"', page))
        form |= {"verdict": "approve", "comment": "Checked.", "second_look": "yes"}
        form["choice"] = re.findall(r'name="choice" value="([^"]+)"', page)
        assert len(form["choice"]) == len(gates), "some of the gates may not be decided together"
        began, before = time.perf_counter(), processor_seconds(web.pid)
        answer = client.post("/inbox/bulk/decisions/", data=form)
        took, spent = time.perf_counter() - began, processor_seconds(web.pid) - before
        again = client.post("/inbox/bulk/decisions/", data=form)
        assert answer.status_code == again.status_code == 303, f"answered {answer.status_code}, {again.status_code}"
    _check_decisions(gates)
    parts = {"gates": str(len(gates)), "of the web's processor": f"{spent:.1f} s", "the list": f"{listed:.2f} s"}
    return Figure("bulk decision", took, "s", most=2, beside=parts)


def _check_decisions(gates: list[int]) -> None:
    """Fail unless each of these gates has one decision."""
    assert sorted(Decision.objects.filter(gate__in=gates).values_list("gate", flat=True)) == sorted(gates)
