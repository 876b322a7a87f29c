"""Measures pages of a large deployment, and decisions: the web process's processor time, and the time of an answer.

A web process as in production answers one request after another; the time is from the request's last byte to the
answer's last. The pages of single runs and gates are of runs that a real worker brought to their gates.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence

import httpx
from django.contrib.auth.models import User

from approvals.models import Gate
from benchmarks.crowd import TEAMS, fill_events, fill_runs
from benchmarks.driving import bring_refunds_to_gates, make_ann, make_team, team_of
from benchmarks.figures import Figure
from benchmarks.measuring import compute_percentile, processor_seconds
from benchmarks.scratch import Scratch
from tests.harness.services import Service
from tests.harness.signed_in_clients import form_of, session_of

REAL, DECIDED = 35, 120  # gates for the pages, and further ones, half of which are approved and half edited
WARM, ASKED = 5, 105  # requests of each page
EVENTS = 5  # for each run
EDIT = {"verdict.refund": "edit", "args.refund/amount": "1.00", "verdict.reply": "approve"}


def measure_pages(scratch: Scratch, runs: int) -> Iterator[Figure]:
    """Measure pages among so many runs, a tenth of which wait at gates, and decisions."""
    ann = make_ann()
    shown, asked = min(REAL, runs // 50), min(ASKED, runs // 20)
    real = bring_refunds_to_gates(scratch, ann, shown + min(DECIDED, runs // 20))
    teams = [team_of(ann).pk, *(make_team().pk for _ in range(TEAMS - 1))]
    fill_runs(scratch, runs=runs, gates=runs // 10, model=real[0][1], teams=teams)
    fill_events(scratch, runs * EVENTS)
    web, base = scratch.start_web()
    pages = {
        "inbox, half of all gates are mine": (["/"] * asked, 20.0),
        "gate": ([f"/gates/{gate}/" for _, gate in real[:shown]] * 3, 27.5),
        "run": ([f"/runs/{run}/" for run, _ in real[:shown]] * 3, 20.0),
        "audit": (["/audit/"] * asked, None),
    }
    with sign_in(ann, base) as browser:
        for name, (addresses, most) in pages.items():
            yield _read_pages(f"{name}: processor time", browser, web, addresses, most)
        gates = [gate for _, gate in real[shown:]]
        yield _decide_gates("an approval's POST, p95", browser, gates[::2], "approve", {})
        yield _decide_gates("an edit's POST, p95", browser, gates[1::2], "each", EDIT)


def sign_in(person: User, base: str) -> httpx.Client:
    """Return a client that sends what a browser with scripts does."""
    cookies = {"sessionid": session_of(person), "hp-zone": "UTC", "csrftoken": "c" * 32}
    headers = {"accept": "text/html", "x-csrftoken": "c" * 32, "origin": base, "referer": base}
    return httpx.Client(base_url=base, cookies=cookies, headers=headers, timeout=60)


def _read_pages(name: str, browser: httpx.Client, web: Service, addresses: list[str], most: float | None) -> Figure:
    times, spent = [], 0.0
    for number, address in enumerate(addresses):
        if number == WARM:
            spent = processor_seconds(web.pid)
        sent = time.perf_counter()
        answer = browser.get(address)
        times.append((time.perf_counter() - sent) * 1000)
        answer.raise_for_status()
    spent = (processor_seconds(web.pid) - spent) * 1000 / (len(times) - WARM)
    p50, p95 = compute_percentile(times[WARM:], 50), compute_percentile(times[WARM:], 95)
    parts = {"p50": f"{p50:.1f} ms", "p95": f"{p95:.1f} ms", "page": f"{len(answer.content) / 1000:.0f} kB"}
    return Figure(name, spent, "ms", most=most, parts=parts)


def _decide_gates(
    name: str, browser: httpx.Client, gates: Sequence[int], verdict: str, typed: dict[str, str]
) -> Figure:
    """Open each gate's page, send its form as a browser would, and measure the answer to the POST."""
    times = []
    for gate in gates:
        browser.get(f"/gates/{gate}/").raise_for_status()
        form = form_of(Gate.objects.get(pk=gate), verdict, **typed)
        # What the page previews while an edit is typed, with the mark of what it showed.
        seen = browser.post(f"/gates/{gate}/impacts/", data=form, headers={"HX-Request": "true"}).raise_for_status()
        form |= dict(re.findall(r'name="(shown\.[^"]+)" value="([^"]*)"', seen.text))
        sent = time.perf_counter()
        answer = browser.post(f"/gates/{gate}/decisions/", data=form)
        times.append((time.perf_counter() - sent) * 1000)
        assert answer.status_code == 303, answer.status_code
    p50, p95 = compute_percentile(times[WARM:], 50), compute_percentile(times[WARM:], 95)
    return Figure(name, p95, "ms", most=40, parts={"p50": f"{p50:.1f} ms", "longest": f"{max(times[WARM:]):.1f} ms"})
