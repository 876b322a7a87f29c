"""Measures the cost of operation: an idle web process, a run, each further web process, and recovery from an outage.

    python -m benchmarks.operating [EVENTS ...]

The same runs at growing numbers of stored events: ten at a time, from start through gate and decision to the end, by a
worker of two processes beside a sweeper. PostgreSQL's processor time is that of all its processes; rows, commits and
bytes are its own statistics. The runs are polled only every fifth of a second, so that polling hardly counts.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil
import psycopg

from benchmarks import crowd
from benchmarks.latency import _approve, _reviewer, _start
from benchmarks.scratch import Scratch

if TYPE_CHECKING:
    from tests.harness.services import Service

EVENTS = (10_000, 1_000_000, 5_000_000)
RUNS, AT_ONCE, WARM = 100, 10, 20
IDLE = 20.0  # seconds
SETTLED = 12.0  # seconds after which every backend has reported its earlier statistics
SEALED = 600.0  # seconds within which the sealer must have sealed all stored events
AWAY = 70.0  # seconds without PostgreSQL
FLAT, HALVED_MS, HALVED_COMMITS, BACK = 1.25, 8.0, 11.0, 5.0  # the aims
BYTES = """
SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables WHERE schemaname = 'public'
"""
READ = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables"
COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


@dataclass
class Cost:
    """The cost between two moments: PostgreSQL's processor seconds, its commits, and the rows read."""

    processor: float
    commits: int
    rows: int


def main(*events: int) -> None:
    """Print the figures and the aims."""
    with Scratch() as scratch:
        scratch.worker()
        scratch.sweeper()
        web, _ = scratch.web()
        ann = _reviewer()
        owner = scratch.environment["DATABASE_OWNER_URL"]
        _runs(ann, WARM)
        print("stored events      PostgreSQL/run   commits/run   rows read/run   idle web process, a minute")
        costs = []
        for stored in events or EVENTS:
            web = _filled(scratch, web, stored)
            _runs(ann, WARM)
            cost = _spent(scratch, lambda: _runs(ann, RUNS))
            costs.append(cost.processor * 1000 / RUNS)
            idle, own = _idle(scratch, web)
            print(f"{stored:13,} {costs[-1]:17.1f} ms {cost.commits / RUNS:11.1f} {cost.rows / RUNS:15.0f}   ", end="")
            print(f"{own:5.2f} s itself, {idle.processor:5.2f} s PostgreSQL, {idle.rows:,} rows")
        flat = max(costs) / min(costs)
        print(f"  the dearest over the cheapest: {flat:.2f} (aim <= {FLAT}): {_verdict(flat <= FLAT)}")
        _bytes(owner, ann)
        _another(scratch, ann)
        _back(scratch, ann)


def _filled(scratch: Scratch, web: Service, stored: int) -> Service:
    """Store events up to the number `stored`, wait until all are sealed, and return a new web process.

    The former one would first read all the new events, which is not to be measured.
    """
    from checkpoints.audit import sealer

    web.stop()
    scratch.services.remove(web)
    crowd.events(scratch.environment["DATABASE_OWNER_URL"], stored)
    until = time.monotonic() + SEALED
    while sealer.lag() > 1.0:
        assert time.monotonic() < until, f"the events were not sealed within {SEALED} s"
        time.sleep(1.0)
    return scratch.web()[0]


def _runs(ann: Any, count: int) -> None:
    """Start runs, approve each at its gate, and wait for their ends; ten at a time."""
    from approvals.models import Gate
    from checkpoints.models import Run

    for _ in range(count // AT_ONCE):
        ids = [_start(ann) for _ in range(AT_ONCE)]
        asked = Gate.objects.filter(run_id__in=ids, status="open")
        for gate in _until(asked.all, AT_ONCE):
            _approve(gate, ann)
        _until(Run.objects.filter(pk__in=ids, status="completed").all, AT_ONCE)


def _until(found: Callable[[], Iterable[Any]], count: int, *, within: float = 120.0, every: float = 0.2) -> Any:
    until = time.monotonic() + within
    while len(rows := list(found())) < count:
        assert time.monotonic() < until, f"{len(rows)} of {count} after {within} s"
        time.sleep(every)
    return rows


def _spent(scratch: Scratch, act: Callable[[], object]) -> Cost:
    """Measure PostgreSQL's cost of `act`."""
    before = _now(scratch)
    act()
    time.sleep(1.5)  # an idle backend reports its statistics once a second
    after = _now(scratch)
    return Cost(*(late - early for late, early in zip(after, before, strict=True)))  # type: ignore[arg-type]


def _now(scratch: Scratch) -> tuple[float, int, int]:
    with psycopg.connect(scratch.postgres.url("holdpoint_bench"), autocommit=True) as connection:
        [[commits]] = connection.execute(COMMITS).fetchall()
        [[rows]] = connection.execute(READ).fetchall()
    return _processor(scratch), commits, rows


def _processor(scratch: Scratch) -> float:
    """Return the processor seconds of all PostgreSQL processes, ended ones included."""
    assert scratch.postgres.process is not None
    main = psutil.Process(scratch.postgres.process.pid)
    living = [main, *main.children(recursive=True)]
    spent = []
    for each in living:
        with suppress(psutil.NoSuchProcess):  # it has just ended, and is counted with the server's own process
            spent.append(each.cpu_times())
    return float(sum(each.user + each.system + each.children_user + each.children_system for each in spent))


def _idle(scratch: Scratch, web: Service) -> tuple[Cost, float]:
    """Measure the cost of an idle minute: PostgreSQL's, and the web process's own processor seconds."""
    scratch_sweeper = next(each for each in scratch.services if each.name == "sweeper")
    scratch_sweeper.pause()  # only the web process is to be measured
    time.sleep(SETTLED)
    process = psutil.Process(web.pid)
    began = process.cpu_times()
    cost = _spent(scratch, lambda: time.sleep(IDLE))
    ended = process.cpu_times()
    scratch_sweeper.resume()
    share = 60 / (IDLE + 1.5)
    own = (ended.user + ended.system - began.user - began.system) * share
    return Cost(cost.processor * share, round(cost.commits * share), round(cost.rows * share)), own


def _another(scratch: Scratch, ann: Any) -> None:
    """Print what a second and a third web process add to the cost of a run."""
    one = _spent(scratch, lambda: _runs(ann, RUNS))
    for _ in range(2):
        scratch.web()
    three = _spent(scratch, lambda: _runs(ann, RUNS))
    more = (three.processor - one.processor) * 1000 / RUNS / 2
    commits = (three.commits - one.commits) / RUNS / 2
    print(f"one web process more, of PostgreSQL a run: {more:.1f} ms", end=" ")
    print(f"(aim <= {HALVED_MS:.0f}): {_verdict(more <= HALVED_MS)},", end=" ")
    print(f"{commits:.1f} commits (aim <= {HALVED_COMMITS:.0f}): {_verdict(commits <= HALVED_COMMITS)}")


def _bytes(owner: str, ann: Any) -> None:
    """Print the bytes that a run leaves, by table."""

    def sizes() -> dict[str, int]:
        with psycopg.connect(owner, autocommit=True) as connection:
            return dict(connection.execute(BYTES).fetchall())

    before = sizes()
    runs = RUNS * 5
    _runs(ann, runs)
    grown = {table: (size - before[table]) / runs / 1000 for table, size in sizes().items()}
    print(f"a run of two steps and a gate leaves {sum(grown.values()):.1f} kB, indexes included:")
    largest = sorted(grown.items(), key=lambda each: -each[1])[:8]
    print("  " + ", ".join(f"{table.partition('_')[2]} {size:.1f}" for table, size in largest))


def _back(scratch: Scratch, ann: Any) -> None:
    """Print the delay after an outage of PostgreSQL until runs that were queued before it are worked on."""
    from django.db import connection

    late = [each for each in scratch.services if each.name in ("worker", "sweeper")]
    for service in late:
        service.pause()
    waiting = [_start(ann) for _ in range(AT_ONCE)]
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    scratch.postgres.stop(by=signal.SIGQUIT)
    for service in late:
        service.resume()
    time.sleep(AWAY)
    scratch.postgres.start(scratch._log("postgres"))
    back = time.monotonic()
    from approvals.models import Gate

    _until(Gate.objects.filter(run_id__in=waiting).all, AT_ONCE, every=0.05)
    took = time.monotonic() - back
    print(f"PostgreSQL away for {AWAY:.0f} s: {AT_ONCE} runs worked on {took:.1f} s after it was back", end=" ")
    print(f"(aim <= {BACK:.0f} s): {_verdict(took <= BACK)}")


def _verdict(holds: bool) -> str:
    return "holds" if holds else "MISSED"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
