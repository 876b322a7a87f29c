"""Measures the server's time and queries for inbox, gate and run pages of a large deployment, and for decisions.

A web process as in production answers one request after another; the time is from the request's last byte to the
answer's last. The queries are counted in this process, with the same views.
"""

from __future__ import annotations

import re
import sys
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import httpx

from benchmarks import crowd
from benchmarks.latency import _until
from benchmarks.numbers import percentile
from benchmarks.page_form import PageForm
from benchmarks.scratch import ROOT, Scratch

if TYPE_CHECKING:
    from django.contrib.auth.models import Group, User

AIM_MS, AIM_QUERIES, AIM_DECISION = 60.0, 12, 40.0
REAL = 40  # runs that a worker brings to their gates, for the pages
DECIDED = 120  # further ones, half of which are approved and half edited
WARM, ASKED = 5, 100  # requests of each page
MAILS = ROOT / "agents" / "examples" / "refunds" / "mails"
EVENTS = 5_000_000


def main(runs: int = 1_000_000, gates: int = 100_000, events: int = EVENTS) -> None:
    """Print each page's times and queries."""
    with Scratch("benchmarks.agents,agents.examples.refunds") as scratch:
        scratch.sandbox()
        scratch.worker()
        people, teams = _people()
        real = _real(people["ann"], REAL + DECIDED)
        began = time.monotonic()
        owner = scratch.environment["DATABASE_OWNER_URL"]
        crowd.fill(owner, runs=runs, gates=gates, model=real[0][1], crowd=teams)
        crowd.events(owner, events)
        print(f"{runs:,} runs, {gates:,} open gates, {events:,} events, filled in {time.monotonic() - began:.0f} s")
        _, base = scratch.web()
        print(f"{'':<44}      p50      p95      max   queries   kB")
        for name, person, addresses in _pages(people, real):
            _report(name, people[person], base, addresses)
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


def _report(name: str, person: User, base: str, addresses: Sequence[str]) -> None:
    cookies = {"sessionid": _session(person)}
    times, size = [], 0
    with httpx.Client(base_url=base, cookies=cookies, headers={"accept": "text/html"}) as client:
        for n in range(WARM + ASKED):
            sent = time.perf_counter()
            answer = client.get(addresses[n % len(addresses)])
            times.append((time.perf_counter() - sent) * 1000)
            answer.raise_for_status()
            size = max(size, len(answer.content))
    p50, p95 = percentile(times[WARM:], 50), percentile(times[WARM:], 95)
    queries = _queries(cookies["sessionid"], addresses[0])
    missed = [*["time"] * (p95 > AIM_MS), *["queries"] * (queries > AIM_QUERIES)]
    verdict = f"MISSED: {', '.join(missed)}" if missed else "holds"
    print(f"{name:<44} {p50:8.1f} {p95:8.1f} {max(times[WARM:]):8.1f} {queries:9d} {size / 1000:5.0f}   {verdict}")


def _decisions(name: str, person: User, base: str, gates: Sequence[int], choice: dict[str, str]) -> None:
    """Open each gate's page, send its form as a browser would, and measure the answer to the POST."""
    times = []
    with httpx.Client(
        base_url=base, cookies={"sessionid": _session(person)}, headers={"accept": "text/html"}
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
    verdict = "holds" if p95 <= AIM_DECISION else "MISSED"
    print(
        f"{name:<44} {p50:8.1f} {p95:8.1f} {max(times[WARM:]):8.1f} {'':>16} {verdict} (aim p95 <= {AIM_DECISION:.0f})"
    )


def _queries(session: str, address: str) -> int:
    from django.test import Client

    from tests.harness.sent_statements import sent

    client = Client(HTTP_ACCEPT="text/html", SERVER_NAME="127.0.0.1")
    client.cookies["sessionid"] = session
    with sent() as statements:
        answer = client.get(address)
    assert answer.status_code == 200, answer.status_code
    return len(statements)


def _people() -> tuple[dict[str, User], list[int]]:
    """Make Ann in the team with half of the gates, Mira in one with few, Eve in one with none; return the teams too."""
    from django.contrib.auth.models import Group, Permission, User

    from approvals.models import Policy

    may = Permission.objects.filter(codename__in=("view_run", "start_run", "rewind_run", "decide_gate"))
    teams: list[Group] = []
    for n in range(crowd.TEAMS + 1):
        teams.append(Group.objects.create(name=f"Bench {n}"))
        teams[-1].permissions.set(may)
        Policy.objects.create(team=teams[-1], name="default", quorum=1, separation=True, hourly=None)
    people = {}
    for name, team in (("ann", teams[0]), ("mira", teams[5]), ("eve", teams[-1])):
        people[name] = User.objects.create_user(name, password=uuid.uuid4().hex)
        people[name].groups.add(team)
    return people, [team.pk for team in teams[:-1]]


def _real(ann: User, real: int = REAL) -> list[tuple[int, int]]:
    """Start runs of the refunds agent that wait at their gates; return (run, gate) for each."""
    from agents.definition import registry
    from agents.runs.start import start_run
    from approvals.models import Gate
    from checkpoints.actors import SYSTEM

    mail = registry.named("refunds").agent.inputs_from(MAILS / "01-frames-sent-back.eml")[0]["mail"]
    team = ann.groups.get()
    # No two are alike: the agent asks about a mail that it has seen before.
    given = [{"mail": {**mail, "raw": f"{mail['raw']}\nThe {number}.\n"}} for number in range(real)]
    runs = [start_run("refunds", each, by=SYSTEM, team=team).pk for each in given]

    def all_asked() -> Any:
        found = dict(Gate.objects.filter(run_id__in=runs, status="open").values_list("run_id", "pk"))
        return found if len(found) == len(runs) else None

    gates = _until(all_asked, within=60)
    return [(run, gates[run]) for run in runs]


def _session(person: User) -> str:
    from tests.conftest import session_of

    return session_of(person)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
