"""Measures the lateness of timers that are spread over a minute, by a real sweeper and a worker of two processes.

The runs are started as always, and are put to sleep by SQL: with the row of a wait each, as their step would leave
them. A run's lateness is from the moment that was due to its event that it is queued, which is the sweeper's part, and
to the first line after the sleep, which is the worker's too.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile
from benchmarks.parts.processes import processor
from benchmarks.parts.relays import completed, start, until
from benchmarks.parts.scratch import Scratch

if TYPE_CHECKING:
    from django.contrib.auth.models import User

MINUTE, LEAD = 60.0, 3.0  # seconds over which they are spread, and before the first
A_SECOND = 10_000 / MINUTE  # timers
AIM = 1.2  # seconds
_SLEEP = """
WITH waits AS (
  INSERT INTO agents_wait
    (run_id, base, step, kind, name, number, head, input_digest, occurrence, due, ended_by, made_at)
  SELECT id, head, next_step, 'timer', 'sleep', 1, head, '', 1, now() + interval '1 day', '', now()
  FROM checkpoints_run WHERE id = ANY($1)
)
UPDATE checkpoints_run SET status = 'waiting', wake_at = now() + interval '1 day', version = 2, token = 1
WHERE id = ANY($1)
"""
_SPREAD = """
WITH chosen AS (
  SELECT id, statement_timestamp() + interval '1 second' * (
    $2::float8 + $3::float8 * row_number() OVER (ORDER BY id) / count(*) OVER ()) AS due
  FROM checkpoints_run WHERE id = ANY($1)
), waits AS (
  UPDATE agents_wait SET due = chosen.due FROM chosen WHERE run_id = chosen.id
)
UPDATE checkpoints_run run SET wake_at = due FROM chosen WHERE run.id = chosen.id RETURNING run.id, due
"""
_QUEUED = "SELECT run_id, at FROM checkpoints_event WHERE kind = 'run.queued' AND run_id = ANY($1)"


def measure(scratch: Scratch, ann: User, count: int) -> None:
    """Print the lateness of `count` timers, at the rate of 10,000 a minute."""
    from agents.ringing import doorbell
    from checkpoints.postgresql.sql import run_sql

    with doorbell.silenced():
        ids = [start(ann, "flow_sleeper") for _ in range(count)]
        run_sql(_SLEEP, [ids])
    worker, sweeper = scratch.worker(), scratch.sweeper()
    sweeper.says("sweeper.ready")
    scratch.analyze()
    parts = {"sweeper": sweeper.pid, "worker": worker.pid}
    before = {name: processor(pid) for name, pid in parts.items()}
    due: dict[int, datetime] = dict(run_sql(_SPREAD, [ids, LEAD, count / A_SECOND]))
    until(lambda: len(completed(ids)) == count, within=LEAD + count / A_SECOND + 120, every=1.0)
    spent = {name: (processor(pid) - before[name]) * 1000 / count for name, pid in parts.items()}
    for service in (sweeper, worker):
        scratch.end(service)
    woken = [(at - due[run]).total_seconds() for run, at in run_sql(_QUEUED, [ids])]
    went_on = _first_lines(due)
    assert len(woken) == len(went_on) == count, "a run was woken twice, or never"
    print(f"processor ms a timer: {', '.join(f'{name} {each:.2f}' for name, each in spent.items())}")
    name = f"{count:,} timers due within {count / A_SECOND:.0f} s"
    for what, late, most in (("queued", woken, AIM), ("the step's first line", went_on, None)):
        beside = {"p50": f"{percentile(late, 50):.2f} s", "longest": f"{max(late):.2f} s"}
        mark(f"{name}: lateness until {what}, p99", percentile(late, 99), "s", most=most, beside=beside)


def _first_lines(due: dict[int, datetime]) -> list[float]:
    from benchmarks.parts.agents import client

    from .flow_agents import WOKEN

    told = (line.split() for line in client().lrange(WOKEN, 0, -1))
    client().delete(WOKEN)
    return [int(at) / 1e9 - due[int(run)].timestamp() for run, at in told]
