"""Measures pages in a real browser: the bytes of a first load, and how fast people clear their inbox.

The keyboard session opens the first gate; each decision leads to the next one. It approves with `a`, rejects every
tenth with `r` and a reason, and sends with Ctrl Enter. The bulk decision is sent as its page sends it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, sync_playwright

from approvals.models import Decision
from benchmarks.driving import bring_refunds_to_gates, make_ann, team_of
from benchmarks.figures import Figure
from benchmarks.scratch import Scratch
from benchmarks.sections.pages import sign_in
from tests.factories import make_card, make_gate, make_run
from tests.factories.runs import make_plan, make_spec
from tests.harness import chromium
from tests.harness.signed_in_clients import session_of

SETTLED = 1500  # milliseconds after the load event, for the socket and for fragments
REJECTED = 10  # every tenth


@contextmanager
def _open_browser() -> Iterator[Browser]:
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
    session, weights = session_of(ann), dict[str, float]()
    with _open_browser() as browser:
        for name, address in addresses.items():
            for width in (390, 1440):
                weight = _load_page(_open_page(browser, base, session, width), base + address)
                weights[name] = max(weight, weights.get(name, 0.0))
    parts = {name: f"{weight:.1f} kB" for name, weight in weights.items()}
    yield Figure("heaviest first load", max(weights.values()), "kB", most=100, parts=parts)


def _load_page(page: Page, url: str) -> float:
    """Return the kB of a page's load."""
    wire, sizes = page.context.new_cdp_session(page), list[float]()
    wire.send("Network.enable")
    wire.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"] / 1000))
    page.goto(url)
    page.wait_for_timeout(SETTLED)
    page.context.close()
    return sum(sizes)


def measure_clearing(scratch: Scratch, count: int) -> Iterator[Figure]:
    """Measure a bulk decision of twice as many gates, and so many gates cleared one by one with the keyboard."""
    ann = make_ann()
    _, base = scratch.start_web()
    many, gates = _make_gates(ann, count * 2, ("low",)), _make_gates(ann, count, ("low", "medium", "high", "critical"))
    yield Figure("bulk decision", _decide_together(ann, base, many), "s", most=2, parts={"gates": str(len(many))})
    session = session_of(ann)
    with _open_browser() as browser:
        took, slowest = _clear_gates(_open_page(browser, base, session, 1440), base, count)
    decided = Decision.objects.filter(gate__in=many + gates).values_list("gate", flat=True)
    assert sorted(decided) == sorted(many + gates), "a gate has no decision, or two"
    parts = {"gates": str(count), "slowest": f"{slowest * 1000:.0f} ms"}
    yield Figure("cleared with the keyboard", count / took, "gates a second", least=3, parts=parts)


def _make_gates(ann: User, count: int, risks: Sequence[str]) -> list[int]:
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


def _decide_together(ann: User, base: str, gates: list[int]) -> float:
    """List the gates, decide them together, and return the seconds of the decision."""
    with sign_in(ann, base) as browser:
        page = browser.post("/inbox/bulk/", data={"gate": gates, "verdict": "approve"}).raise_for_status().text
        form: dict[str, Any] = dict(re.findall(r'name="(key)" value="([^"]+)"', page))
        form |= {"verdict": "approve", "comment": "Checked.", "second_look": "yes"}
        form["choice"] = re.findall(r'name="choice" value="([^"]+)"', page)
        began = time.perf_counter()
        answer = browser.post("/inbox/bulk/decisions/", data=form)
        took = time.perf_counter() - began
    assert answer.status_code == 303, f"answered {answer.status_code}"
    return took
