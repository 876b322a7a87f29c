"""Measures pages of a large deployment, decisions, first loads, inboxes that are cleared, and open pages.

A web process as in production answers one request after another; the time is from the request's last byte to the
answer's last. The pages of single runs and gates are of runs that a real worker brought to their gates. The database is
filled with ended and waiting runs, open gates of many teams, and events, for lists, filters, counts and indexes; they
have no checkpoints.

The keyboard session in a real browser opens the first gate; each decision leads to the next one. It approves with `a`,
rejects every tenth with `r` and a reason, and sends with Ctrl Enter. The bulk decision is sent as its page sends it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
from django.conf import settings
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, sync_playwright

from approvals.models import Decision, Gate
from benchmarks.clients import Clients, OpenPages
from benchmarks.driving import bring_refunds_to_gates, make_ann, make_team, team_of
from benchmarks.figures import Figure, compute_percentile, processor_seconds, resident_megabytes
from benchmarks.scratch import Scratch
from checkpoints.actors import SYSTEM
from checkpoints.events import commit_order, event_log
from checkpoints.models import Run
from checkpoints.postgresql import xid_offset
from tests.factories import make_card, make_gate, make_run
from tests.factories.people import make_user
from tests.factories.runs import make_plan, make_spec
from tests.harness import chromium
from tests.harness.services import Service
from tests.harness.signed_in_clients import form_of, session_of

REAL, DECIDED = 35, 120  # gates for the pages, and further ones, half of which are approved and half edited
WARM, ASKED = 5, 105  # requests of each page
EVENTS = 5  # for each run
EDIT = {"verdict.refund": "edit", "args.refund/amount": "1.00", "verdict.reply": "approve"}
SETTLED = 1500  # milliseconds after the load event, for the socket and for fragments
REJECTED = 10  # every tenth
PEOPLE, VIEWERS, REMARKS, ROUNDS = 50, 50, 60, 11
STORED = 1_000  # events for each socket
PAUSE = 0.2  # seconds between events
TEAMS = 20


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


def measure_sockets(scratch: Scratch, sockets: int) -> Iterator[Figure]:
    """Measure so many open pages."""
    ann = make_ann()
    fill_events(scratch, STORED * sockets)
    run_id, gate = bring_refunds_to_gates(scratch, ann, 1)[0]
    run, status = Run.objects.get(pk=run_id), f"/gates/{gate}/status/"
    people = [make_user("Viewer", team_of(ann)) for _ in range(PEOPLE)]
    sessions = [f"{settings.SESSION_COOKIE_NAME}={session_of(person)}" for person in people]
    web, base = scratch.start_web()
    with httpx.Client(base_url=base) as client:  # the process warms up
        for session in sessions:
            client.get(status, headers={"Cookie": session}).raise_for_status()
    before = resident_megabytes(web.pid)
    cookies = [sessions[number % PEOPLE] for number in range(sockets)]
    with Clients(OpenPages, base, f"gate:{gate}", str(commit_order.newest_cursor()), cookies) as pages:
        refused = pages.ask("open")
        weight = (resident_megabytes(web.pid) - before) * 1000 / sockets
        parts = {"open": f"{sockets:,}", "refused": f"{refused}"}
        yield Figure("memory of a socket", weight, "kB", most=120, parts=parts)
        facts = []
        for number in range(1, REMARKS + 1):
            sent = _record_event(run, gate, number)
            facts += [(at - sent) / 1e6 for at in pages.ask("hear", number, 20.0)]
            time.sleep(PAUSE)
        yield _delay_of("committed -> fact at every socket", facts, 1_000)
        fragments = []
        for number in range(1001, 1001 + ROUNDS):
            sent = _record_event(run, gate, number)
            read = pages.ask("fetch", f"{status}?seen=1", number, VIEWERS)
            fragments += [(at - sent) / 1e6 for at in read if number > 1001]  # the first opens connections
        yield _delay_of(f"committed -> fragment for {VIEWERS} viewers", fragments, 500)
        web.kill()
        for number in range(2001, 2041):
            _record_event(run, gate, number)
        scratch.start_web(port=int(base.rpartition(":")[2]))
        back = time.monotonic_ns()
        seconds = max((at - back) / 1e9 for at in pages.ask("hear", 2040, 60.0))
        missed = pages.ask("missed", 2001, 2040) - refused
    yield Figure("after the process was killed: all back and caught up", seconds, "s", most=15)
    yield Figure("handshakes refused and facts lost meanwhile", missed, most=0)


def _record_event(run: Run, gate: int, number: int) -> int:
    """Commit an event of the gate with this number; return the time of the commit, in ns."""
    data = {"reviewers": [run.team_id]}
    event_log.record("gate.remarked", subject=f"gate:{gate}", by=SYSTEM, run=run, version=number, data=data)
    return time.monotonic_ns()


def _delay_of(name: str, waits: Sequence[float], most: float) -> Figure:
    parts = {"p50": f"{compute_percentile(waits, 50):.0f} ms"}
    return Figure(f"{name}, p99", compute_percentile(waits, 99), "ms", most=most, parts=parts)


def fill_runs(scratch: Scratch, *, runs: int, gates: int, model: int, teams: list[int]) -> None:
    """Add `runs` runs, `gates` of them waiting at an open gate, to the teams; half of each to the first.

    `model` is the id of a real open gate, whose card the new gates repeat under titles of their own.
    """
    with _filling(scratch, "checkpoints_run", "approvals_gate") as connection:
        values = {"runs": runs, "gates": gates, "every": max(runs // gates, 1), "model": model, "crowd": teams}
        connection.execute("SELECT setseed(0.2026)")
        for statement in (_ROWS, _RUNS, _GATES):
            connection.execute(statement, values)
        for table in ("checkpoints_run", "approvals_gate"):
            connection.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}")


def fill_events(scratch: Scratch, count: int) -> None:
    """Add events of long ended runs: four saved checkpoints to one other event, as in real runs.

    They come before all later events: the offset of transactions is raised first.
    """
    with _filling(scratch, "checkpoints_event") as connection:
        connection.execute(_EVENTS, [count])
        xid_offset.raise_offset(connection, lost_ids=0)


@contextmanager
def _filling(scratch: Scratch, *tables: str) -> Iterator[psycopg.Connection[Any]]:
    """Connect in one transaction, without triggers and secondary indexes of the tables until its end; then vacuum."""
    with psycopg.connect(scratch.admin_url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET maintenance_work_mem = '256MB'")
        indexes = connection.execute(_INDEXES, [list(tables)]).fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}")
        yield connection
        for _, definition in indexes:
            connection.execute(definition)
    with psycopg.connect(scratch.admin_url, autocommit=True) as admin:
        admin.execute("VACUUM ANALYZE")


# Those that hold no constraint.
_INDEXES = """
SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i
WHERE i.indrelid = ANY(%s::regclass[]) AND NOT i.indisprimary
    AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
"""
# Every so-many-th run waits at a gate, up to the number of gates. Half of the waiting, and of the others, are the first
# team's.
_ROWS = """
CREATE TEMPORARY TABLE crowd ON COMMIT DROP AS
SELECT first + n AS id, waits, team, lpad(to_hex(n + 1), 32, '0')::uuid AS checkpoint,
    now() - interval '180 days' * (1 - n::float / %(runs)s) AS at, 'order ' || 20000 + n AS bought,
    (ARRAY['Marit Ellery', 'Ivo Petrov', 'Nadia Haddad', 'Tomasz Hale', 'Chiara Bruni', 'Lena Vogt'])[random(1, 6)]
        AS buyer
FROM generate_series(0, %(runs)s - 1) AS n,
    (SELECT coalesce(max(id), 0) + 1000 AS first FROM checkpoints_run) AS newest,
    LATERAL (SELECT n %% %(every)s = 0 AND n / %(every)s < %(gates)s AS waits) AS waiting,
    LATERAL (SELECT CASE WHEN waits THEN n / %(every)s ELSE n END AS nth) AS counted,
    LATERAL (SELECT CASE nth %% 2 WHEN 1 THEN 0 ELSE nth / 2 %% cardinality(%(crowd)s::int[]) END AS place) AS dealt,
    LATERAL (SELECT (%(crowd)s::int[])[1 + place] AS team) AS belonging
"""
_RUNS = """
INSERT INTO checkpoints_run (id, lineage, plan_id, team_id, title, status, version, head, seq, next_step, token, worker,
    attempts, reason, started_as, environment, halt, settling, ending, ending_reason, ending_by, ending_by_name,
    created_at, finished_at)
SELECT crowd.id, crowd.id, model_run.plan_id, team, 'Refund ' || bought || ' for ' || buyer,
    CASE WHEN waits THEN 'waiting' ELSE coalesce((ARRAY['failed', 'cancelled'])[random(1, 10)], 'completed') END,
    4, crowd.checkpoint, 4, model.step, 1, '', 0, CASE WHEN waits THEN 'asks: a question' ELSE '' END, 'system', '{}',
    false, false, '', '', '', '', crowd.at, CASE WHEN NOT waits THEN crowd.at + interval '3 minutes' END
FROM crowd, approvals_gate model JOIN checkpoints_run model_run ON model_run.id = model.run_id
WHERE model.id = %(model)s
"""
_GATES = """
INSERT INTO approvals_gate (id, run_id, team_id, policy_id, checkpoint, step, kind, status, version, proposal, title,
    risk, card, deadline, opened_at)
SELECT crowd.id, crowd.id, team, policies.newest, crowd.checkpoint, model.step, 'review', 'open', 1, 1,
    'Refund ' || bought || ' and reply to ' || buyer, (ARRAY['low', 'medium', 'medium', 'high'])[random(1, 4)],
    model.card, CASE WHEN random() < 0.7 THEN now() + interval '1 minute' * random(5, 12960) END, crowd.at
FROM crowd JOIN (SELECT team_id, max(id) AS newest FROM approvals_policy GROUP BY team_id) policies
    ON policies.team_id = crowd.team, approvals_gate model
WHERE waits AND model.id = %(model)s
"""
# To readers, each event is in a transaction of its own.
_EVENTS = """
INSERT INTO checkpoints_event (xid, kind, run_id, team_id, subject, version, actor, actor_name, data)
SELECT newest + n, CASE n %% 5 WHEN 0 THEN 'run.running' ELSE 'checkpoint.saved' END, -n / 10, 1, 'run:' || -n / 10,
    n %% 10, 'agent:relay', 'relay', '{}'
FROM generate_series(1, %s) AS n, (SELECT coalesce(max(xid), 0) AS newest FROM checkpoints_event)
"""
