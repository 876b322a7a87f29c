"""Measures how runs go on after a timer is due, and after their worker was killed, by real sweepers and workers.

The sleeping runs are put to sleep by SQL: with the row of a wait each, as their step would leave them. A run's lateness
is from the moment that was due to its event that it is queued, which is the sweeper's part, and to the first line after
the sleep. A killed worker has a run in each of its processes, inside a step, and its lease runs out by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User

from agents.ringing import doorbell
from benchmarks.agents import GO_ON, HELD, RESUMED, WOKEN, times_connection
from benchmarks.driving import completed_runs, make_ann, start_agent
from benchmarks.figures import Figure
from benchmarks.measuring import compute_percentile, wait_for_word
from benchmarks.scratch import Scratch
from checkpoints.postgresql.sql import run_sql
from tests.harness.waiting import until

MINUTE, LEAD = 60.0, 3.0  # seconds over which the timers are spread, and before the first
A_SECOND = 10_000 / MINUTE  # timers
KILLED, PROCESSES, FULL = 5, 10, 10_000  # workers that are killed, runs of each, and timers of a section of full size
OVER = 2.0  # seconds beyond the lease
SLEEP = """
WITH waits AS (
  INSERT INTO agents_wait
    (run_id, base, step, kind, name, number, head, input_digest, occurrence, due, ended_by, made_at)
  SELECT id, head, next_step, 'timer', 'sleep', 1, head, '', 1, now() + interval '1 day', '', now()
  FROM checkpoints_run WHERE id = ANY($1)
)
UPDATE checkpoints_run SET status = 'waiting', wake_at = now() + interval '1 day', version = 2, token = 1
WHERE id = ANY($1)
"""
SPREAD = """
WITH chosen AS (
  SELECT id, statement_timestamp() + interval '1 second' * (
    $2::float8 + $3::float8 * row_number() OVER (ORDER BY id) / count(*) OVER ()) AS due
  FROM checkpoints_run WHERE id = ANY($1)
), waits AS (
  UPDATE agents_wait SET due = chosen.due FROM chosen WHERE run_id = chosen.id
)
UPDATE checkpoints_run run SET wake_at = due FROM chosen WHERE run.id = chosen.id RETURNING run.id, due
"""
QUEUED = "SELECT run_id, at FROM checkpoints_event WHERE kind = 'run.queued' AND run_id = ANY($1)"


def measure_flow(scratch: Scratch, timers: int) -> Iterator[Figure]:
    """Measure `timers` timers, and killed workers."""
    ann = make_ann()
    scratch.start_sweeper()
    yield from _measure_timers(scratch, ann, timers)
    full = timers >= FULL
    yield from _measure_kills(scratch, ann, KILLED if full else 1, PROCESSES if full else 2)


def _measure_timers(scratch: Scratch, ann: User, count: int) -> Iterator[Figure]:
    with doorbell.silenced():
        runs = [start_agent("sleeper", ann) for _ in range(count)]
        run_sql(SLEEP, [runs])
    worker, seconds = scratch.start_worker(), count / A_SECOND
    scratch.analyze()
    due: dict[int, datetime] = dict(run_sql(SPREAD, [runs, LEAD, seconds]))
    until(lambda: len(completed_runs(runs)) == count, within=LEAD + seconds + 120)
    worker.stop()
    queued = [(at - due[run]).total_seconds() for run, at in run_sql(QUEUED, [runs])]
    lines = (line.split() for line in times_connection().lrange(WOKEN, 0, -1))
    resumed = [int(at) / 1e9 - due[int(run)].timestamp() for run, at in lines]
    assert len(queued) == len(resumed) == count, "a run was woken twice, or never"
    for what, late, most in (("queued", queued, 1.2), ("the step's first line", resumed, None)):
        parts = {"p50": f"{compute_percentile(late, 50):.2f} s", "longest": f"{max(late):.2f} s"}
        name = f"{count:,} timers due within {seconds:.0f} s: lateness until {what}, p99"
        yield Figure(name, compute_percentile(late, 99), "s", most=most, parts=parts)


def _measure_kills(scratch: Scratch, ann: User, kills: int, runs: int) -> Iterator[Figure]:
    """Kill workers that have so many runs in hand, beside another one."""
    lease, doomed, late = settings.HOLDPOINT_LEASE, scratch.start_worker(runs), list[float]()
    for number in range(kills):
        _hold_runs(ann, runs)
        time.sleep(lease / 3 * number / kills)  # a heartbeat comes after each third of the lease
        other = scratch.start_worker(runs)
        doomed.kill()
        killed = time.monotonic_ns()
        late += [(int(wait_for_word(RESUMED).split()[1]) - killed) / 1e9 for _ in range(runs)]
        doomed = other
    parts = {"p50": f"{compute_percentile(late, 50):.2f} s", "longest": f"{max(late):.2f} s", "kills": f"{len(late)}"}
    name = f"worker killed -> its run goes on, a worker beside another, lease {lease:g} s, p99"
    yield Figure(name, compute_percentile(late, 99), "s", most=lease + OVER, parts=parts)


def _hold_runs(ann: User, runs: int) -> None:
    """Start runs and wait until each of them is inside its step."""
    times_connection().delete(GO_ON)
    ids = {start_agent("holder", ann) for _ in range(runs)}
    while ids:
        ids.discard(int(wait_for_word(HELD)))
