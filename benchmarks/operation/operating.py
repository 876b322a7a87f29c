"""Measures the cost of operation: an idle web process, a run, each further web process, and recovery from an outage.

    python -m benchmarks.operation.operating [EVENTS ...]

The same runs at growing numbers of stored events: ten at a time, from start through gate and decision to the end, by a
worker of two processes beside a sweeper. PostgreSQL's processor time is that of all its processes; rows, commits and
bytes are its own statistics. The runs are polled only every fifth of a second, so that polling hardly counts.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
import psycopg

from benchmarks.marks import mark
from benchmarks.parts import crowd
from benchmarks.parts.people import make_person, make_team
from benchmarks.parts.processes import processor
from benchmarks.parts.relays import start, through, until
from benchmarks.parts.scratch import DATABASE, Scratch

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from tests.harness.services import Service

EVENTS = (10_000, 5_000_000)
RUNS, AT_ONCE, WARM = 100, 10, 20
LOOK = 0.2  # seconds
IDLE = 20.0  # seconds
SETTLED = 12.0  # seconds after which every backend has reported its earlier statistics
SEALED = 600.0  # seconds within which the sealer must have sealed all stored events
AWAY = 35.0  # seconds without PostgreSQL: one that doubles its waits would look next after 63
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
        ann = make_person("ann", make_team())
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
            sys.stdout.flush()
        beside = {f"{stored:,} events": f"{cost:.1f} ms" for stored, cost in zip(events or EVENTS, costs, strict=True)}
        mark(
            "PostgreSQL's time of a run, the dearest over the cheapest",
            max(costs) / min(costs),
            most=FLAT,
            beside=beside,
        )
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
    crowd.events(scratch, stored)
    logging.disable(logging.INFO)  # each seal is a line
    end = time.monotonic() + SEALED
    while sealer.lag() > 1.0:
        assert time.monotonic() < end, f"the events were not sealed within {SEALED} s"
        sealer.seal_once()  # the sweeper seals no more than ten thousand a second
    return scratch.web()[0]


def _runs(ann: User, count: int) -> None:
    """Start runs, approve each at its gate, and wait for their ends; ten at a time."""
    for _ in range(count // AT_ONCE):
        through(ann, AT_ONCE, every=LOOK)


def _spent(scratch: Scratch, act: Callable[[], object]) -> Cost:
    """Measure PostgreSQL's cost of `act`."""
    before = _now(scratch)
    act()
    time.sleep(1.5)  # an idle backend reports its statistics once a second
    after = _now(scratch)
    return Cost(*(late - early for late, early in zip(after, before, strict=True)))  # type: ignore[arg-type]


def _now(scratch: Scratch) -> tuple[float, int, int]:
    with psycopg.connect(scratch.postgres.url(DATABASE), autocommit=True) as connection:
        [[commits]] = connection.execute(COMMITS).fetchall()
        [[rows]] = connection.execute(READ).fetchall()
    assert scratch.postgres.process is not None
    return processor(scratch.postgres.process.pid), commits, rows


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


def _another(scratch: Scratch, ann: User) -> None:
    """Print what a second and a third web process add to the cost of a run."""
    one = _spent(scratch, lambda: _runs(ann, RUNS))
    for _ in range(2):
        scratch.web()
    three = _spent(scratch, lambda: _runs(ann, RUNS))
    more = (three.processor - one.processor) * 1000 / RUNS / 2
    commits = (three.commits - one.commits) / RUNS / 2
    mark("one web process more, of PostgreSQL a run", more, "ms", most=HALVED_MS)
    mark("one web process more, commits a run", commits, most=HALVED_COMMITS)


def _bytes(owner: str, ann: User) -> None:
    """Print the bytes that a run leaves, by table."""

    def sizes() -> dict[str, int]:
        with psycopg.connect(owner, autocommit=True) as connection:
            return dict(connection.execute(BYTES).fetchall())

    before = sizes()
    runs = RUNS * 3
    _runs(ann, runs)
    grown = {table: (size - before[table]) / runs / 1000 for table, size in sizes().items()}
    print(f"a run of two steps and a gate leaves {sum(grown.values()):.1f} kB, indexes included:")
    largest = sorted(grown.items(), key=lambda each: -each[1])[:8]
    print("  " + ", ".join(f"{table.partition('_')[2]} {size:.1f}" for table, size in largest))


def _back(scratch: Scratch, ann: User) -> None:
    """Print the delay after an outage of PostgreSQL until runs that were queued before it are worked on."""
    from django.db import connection

    from approvals.models import Gate

    late = [each for each in scratch.services if each.name in ("worker", "sweeper")]
    for service in late:
        service.pause()
    waiting = [start(ann) for _ in range(AT_ONCE)]
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    scratch.postgres.stop(by=signal.SIGQUIT)
    for service in late:
        service.resume()
    time.sleep(AWAY)
    scratch.postgres.start(scratch.log("postgres"))
    back = time.monotonic()
    asked = Gate.objects.filter(run_id__in=waiting)
    until(lambda: asked.count() == AT_ONCE, every=0.05)
    took = time.monotonic() - back
    mark(f"PostgreSQL away for {AWAY:.0f} s: {AT_ONCE} runs worked on once it was back", took, "s", most=BACK)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
