"""Measures the server's time and queries for inbox, gate and run pages of a large deployment, and for decisions.

A web process as in production answers one request after another; the time is from the request's last byte to the
answer's last, and beside it stands the processor time, user and system, that the web process took for a page. The
queries are counted in this process, with the same views.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import httpx

from benchmarks.marks import mark
from benchmarks.pages.page_form import PageForm
from benchmarks.pages.waiting_refunds import AGENTS, wait_at_gates
from benchmarks.parts import crowd
from benchmarks.parts.numbers import percentile
from benchmarks.parts.people import make_readers, session_of
from benchmarks.parts.processes import processor
from benchmarks.parts.scratch import Scratch

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from tests.harness.services import Service

AIM_MS, AIM_QUERIES, AIM_DECISION = 60.0, 12, 40.0
# ms: half of what each took before templates and forms were made once
AIM_PROCESSOR = {"inbox, half of all gates are mine": 20.0, "gate": 27.5, "run": 20.0}
REAL = 40  # runs that a worker brings to their gates, for the pages
DECIDED = 120  # further ones, half of which are approved and half edited
WARM, ASKED = 5, 100  # requests of each page
EVENTS = 5_000_000


class Page(NamedTuple):
    """A page's times in ms, the web process's processor time among them, and its queries."""

    p50: float
    p95: float
    processor: float
    queries: int


def main(runs: int = 1_000_000, gates: int = 100_000, events: int = EVENTS) -> None:
    """Print each page's times and queries."""
    with Scratch(AGENTS) as scratch:
        scratch.sandbox()
        scratch.worker()
        people, teams = make_readers(crowd.TEAMS)
        real = wait_at_gates(people["ann"], REAL + DECIDED)
        began = time.monotonic()
        crowd.fill(scratch, runs=runs, gates=gates, model=real[0][1], crowd=teams)
        crowd.events(scratch, events)
        print(f"{runs:,} runs, {gates:,} open gates, {events:,} events, filled in {time.monotonic() - began:.0f} s")
        web, base = scratch.web()
        print(f"{'':<34}      p50      p95      max  processor   queries   kB", flush=True)
        found = {name: _asked(name, people[person], web, base, urls) for name, person, urls in _pages(people, real)}
        _report(found)
        decided = [gate for _, gate in real[REAL:]]
        _decisions("an approval's POST", people["ann"], base, decided[::2], {"verdict": "approve"})
        edit = {"verdict.refund": "edit", "args.refund/amount": "1.00", "verdict.reply": "approve"}
        _decisions("an edit's POST", people["ann"], base, decided[1::2], {"verdict": "each", **edit})


def _pages(people: dict[str, User], real: Sequence[tuple[int, int]]) -> list[tuple[str, str, list[str]]]:
    """List the pages: a name, the person who requests it, and the addresses in turn."""
    gates = [f"/gates/{gate}/" for _, gate in real[:REAL]]
    runs = [f"/runs/{run}/" for run, _ in real[:REAL]]
    return [
        ("inbox, half of all gates are mine", "ann", ["/"]),
        ("inbox, a team with few of them", "mira", ["/"]),
        ("inbox, none of them mine", "eve", ["/"]),
        ("inbox, all I may see", "ann", ["/?queue=all"]),
        ("inbox, decided", "ann", ["/?queue=decided"]),
        ("inbox, my groups", "ann", ["/?queue=groups"]),
        ("inbox, decided by me", "ann", ["/?queue=by_me"]),
        ("inbox, in other orders", "ann", [f"/?sort={each}" for each in ("oldest", "amount", "risk", "delay")]),
        ("inbox, by words", "ann", ["/?q=refund", "/?q=nobodys", "/?q=order%2020418"]),
        ("insights", "ann", ["/insights/"]),
        ("insights, the gates", "ann", ["/insights/gates/"]),
        ("gate", "ann", gates),
        ("run", "ann", runs),
        ("runs", "ann", ["/runs/"]),
        ("runs, by status", "ann", [f"/runs/?status={each}" for each in ("mine", "failed", "waiting", "completed")]),
        ("runs, by agent and status", "ann", ["/runs/?agent=refunds", "/runs/?agent=refunds&status=failed"]),
        ("runs, by words", "ann", ["/runs/?q=refund", "/runs/?q=nobodys", "/runs/?q=order%2020418"]),
        ("runs, by starter and day", "ann", ["/runs/?by=ann", "/runs/?since=2020-01-01&until=2020-01-02"]),
        ("runs, far below", "ann", ["/runs/?before=500000"]),
        ("agents", "ann", ["/agents/"]),
        ("agent", "ann", ["/agents/refunds/"]),
        ("runs, waiting", "ann", ["/runs/?status=waiting"]),
    ]


def _asked(name: str, person: User, web: Service, base: str, addresses: Sequence[str]) -> Page:
    """Ask for the pages one after another, and print the times."""
    cookies = {"sessionid": session_of(person), "hp-zone": "UTC"}  # as a browser with scripts has it
    times, size, spent = [], 0, 0.0
    with httpx.Client(base_url=base, cookies=cookies, headers={"accept": "text/html"}) as client:
        for n in range(WARM + ASKED):
            if n == WARM:
                spent = processor(web.pid)
            sent = time.perf_counter()
            answer = client.get(addresses[n % len(addresses)])
            times.append((time.perf_counter() - sent) * 1000)
            answer.raise_for_status()
            size = max(size, len(answer.content))
    spent = (processor(web.pid) - spent) * 1000 / ASKED  # to a tenth: the kernel counts hundredths of a second
    p50, p95 = percentile(times[WARM:], 50), percentile(times[WARM:], 95)
    page = Page(p50, p95, spent, _queries(cookies["sessionid"], addresses[0]))
    figures = f"{p50:8.1f} {p95:8.1f} {max(times[WARM:]):8.1f} {spent:10.1f} {page.queries:9d} {size / 1000:5.0f}"
    print(f"{name:<34} {figures}", flush=True)
    return page


def _report(found: dict[str, Page]) -> None:
    for name, aim in AIM_PROCESSOR.items():
        page = found[name]
        mark(f"{name}: processor time", page.processor, "ms", most=aim, beside={"p50": f"{page.p50:.1f} ms"})
    name = max(found, key=lambda each: found[each].p95)
    mark("dearest page's p95", found[name].p95, "ms", most=AIM_MS, beside={"page": name})
    name = max(found, key=lambda each: found[each].queries)
    mark("most queries of a page", found[name].queries, most=AIM_QUERIES, beside={"page": name})


def _decisions(name: str, person: User, base: str, gates: Sequence[int], choice: dict[str, str]) -> None:
    """Open each gate's page, send its form as a browser would, and measure the answer to the POST."""
    times = []
    with httpx.Client(
        base_url=base, cookies={"sessionid": session_of(person)}, headers={"accept": "text/html"}
    ) as client:
        for gate in gates:
            action = f"/gates/{gate}/decisions/"
            form = PageForm(client.get(f"/gates/{gate}/").raise_for_status().text, action).fields | choice
            # What the page previews while an edit is typed, with the mark of what it showed.
            seen = client.post(f"/gates/{gate}/impacts/", data=form, headers={"HX-Request": "true"}).raise_for_status()
            form |= dict(re.findall(r'name="(shown\.[^"]+)" value="([^"]*)"', seen.text))
            sent = time.perf_counter()
            answer = client.post(action, data=form)
            times.append((time.perf_counter() - sent) * 1000)
            assert answer.status_code == 303, answer.status_code
    p50, p95 = percentile(times[WARM:], 50), percentile(times[WARM:], 95)
    beside = {"p50": f"{p50:.1f} ms", "longest": f"{max(times[WARM:]):.1f} ms"}
    mark(f"{name}, p95", p95, "ms", most=AIM_DECISION, beside=beside)


def _queries(session: str, address: str) -> int:
    from django.test import Client

    from tests.harness.sent_statements import sent

    client = Client(HTTP_ACCEPT="text/html", SERVER_NAME="127.0.0.1")
    client.cookies["sessionid"], client.cookies["hp-zone"] = session, "UTC"
    with sent() as statements:
        answer = client.get(address)
    assert answer.status_code == 200, answer.status_code
    return len(statements)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
