"""Measures how fast people clear their inbox: gate after gate with the keyboard in a real browser, and many together.

The keyboard session opens the first gate and goes on to the next one by itself after each decision. It approves with
`a`, rejects every tenth with `r` and a reason, ticks the second look where it is asked, and sends with Ctrl Enter. The
bulk decision is sent as its page sends it: the list of two hundred gates first, then the order.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from benchmarks.marks import mark
from benchmarks.pages.weight import browser
from benchmarks.parts.people import make_person, make_team, session_of
from benchmarks.parts.processes import processor
from benchmarks.parts.scratch import Scratch

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from playwright.sync_api import Page

    from tests.harness.services import Service

ONE_BY_ONE, TOGETHER = 100, 200
AIM_RATE, AIM_BULK = 3.0, 2.0  # gates a second, seconds
REJECTED = 10  # every tenth


def main() -> None:
    """Print the gates a second of a keyboard session, and the seconds of a bulk decision."""
    with Scratch() as scratch:
        ann = make_person("ann", make_team())
        web, base = scratch.web()
        _bulk(ann, web, base, _gates(ann, TOGETHER, risks=("low",)))
        gates = _gates(ann, ONE_BY_ONE, risks=("low", "medium", "high", "critical"))
        session = session_of(ann)
        with browser() as opened:
            context = opened.new_context(viewport={"width": 1440, "height": 900}, timezone_id="Europe/Berlin")
            for cookie, value in (("sessionid", session), ("hp-zone", "Europe/Berlin")):
                context.add_cookies([{"name": cookie, "value": value, "url": base}])
            took, slowest = _cleared(context.new_page(), base)
        _decided_once(gates)
    beside = {"gates": str(ONE_BY_ONE), "slowest": f"{slowest * 1000:.0f} ms", "twice": "0"}
    mark("cleared with the keyboard", ONE_BY_ONE / took, "gates a second", least=AIM_RATE, beside=beside)


def _gates(ann: User, count: int, *, risks: Sequence[str]) -> list[int]:
    """Open so many gates in Ann's team, of one agent for each risk."""
    from tests.factories import make_card, make_gate, make_run
    from tests.factories.runs import make_plan, make_spec

    team, found = ann.groups.get(), []
    plans = [make_plan(make_spec()) for _ in risks]
    for number in range(count):
        at = number % len(risks)
        card = make_card(title=f"Refund order {20_000 + number}", risk=risks[at], amount=f"€{number + 1}.00")
        found.append(make_gate(team=team, run=make_run(team=team, plan=plans[at]), card=card).pk)
    return found


def _cleared(page: Page, base: str) -> tuple[float, float]:
    """Decide the first gate and each that follows; return the seconds of all, and of the slowest."""
    page.goto(base + "/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/gates/*/**")
    began, times = time.perf_counter(), []
    for number in range(1, ONE_BY_ONE + 1):
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
        if number < ONE_BY_ONE:
            page.wait_for_function("left => location.pathname !== left", arg=urlsplit(here).path)
        else:
            page.wait_for_selector("#decision", state="detached")
        times.append(time.perf_counter() - sent)
    return time.perf_counter() - began, max(times)


def _decided_once(gates: list[int]) -> None:
    """Fail unless each of these gates has one decision."""
    from approvals.models import Decision

    found = sorted(Decision.objects.filter(gate__in=gates).values_list("gate", flat=True))
    if found != sorted(gates):
        raise SystemExit(f"{len(gates)} gates have {len(found)} decisions, at {len(set(found))} gates")


def _bulk(ann: User, web: Service, base: str, gates: list[int]) -> None:
    """List the gates, decide them together, and send the same again."""
    cookies = {"sessionid": session_of(ann), "csrftoken": "c" * 32}
    with httpx.Client(base_url=base, cookies=cookies, timeout=60) as client:
        client.headers.update({"accept": "text/html", "referer": base, "origin": base, "x-csrftoken": "c" * 32})
        began = time.perf_counter()
        page = client.post("/inbox/bulk/", data={"gate": gates, "verdict": "approve"})
        listed = time.perf_counter() - began
        form: dict[str, Any] = _form(page.text)
        if len(form["choice"]) != len(gates):
            raise SystemExit(f"only {len(form['choice'])} of {len(gates)} may be decided together")
        began, before = time.perf_counter(), processor(web.pid)
        sent = client.post("/inbox/bulk/decisions/", data=form)
        decided, spent = time.perf_counter() - began, processor(web.pid) - before
        again = client.post("/inbox/bulk/decisions/", data=form)
        if not (sent.status_code == again.status_code == 303):
            raise SystemExit(f"answered {sent.status_code} and {again.status_code}")
    _decided_once(gates)
    mark("bulk list drawn", listed, "s", beside={"gates": str(len(gates)), "kB": f"{len(page.content) / 1000:.0f}"})
    beside = {"gates": str(len(gates)), "twice": "0", "of the web's processor": f"{spent:.1f} s"}
    mark("bulk decision", decided, "s", most=AIM_BULK, beside=beside)


def _form(page: str) -> dict[str, Any]:
    key = re.search(r'name="key" value="([^"]+)"', page)
    choices = re.findall(r'name="choice" value="([^"]+)"', page)
    said = {"verdict": "approve", "comment": "Checked.", "second_look": "yes"}
    return {**said, "key": key[1] if key else "", "choice": choices}


if __name__ == "__main__":
    main()
