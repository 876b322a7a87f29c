"""Measures how runs go on: after a timer is due, after their worker was killed, and after an edit.

Timers and killed workers are of real sweepers and workers.

The sleeping runs are put to sleep by SQL: with the row of a wait each, as their step would leave them. A run's lateness
is from the moment that was due to its event that it is queued, which is the sweeper's part, and to the first line after
the sleep. A killed worker has a run in each of its processes, inside a step, and its lease runs out by itself.

What runs again after an edit of one input is counted for random agents of 10 to 200 steps. The edit is made after
completion, and the run goes on to its end. Beside it stands a restart from the checkpoint before the first step that
reads the input. A step's output depends only on what it reads; half of them have one of two values, so that some
changes do not spread. A fifth of the steps are effects.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User

from agents.definition import registry
from agents.moves import rewind
from agents.ringing import doorbell
from benchmarks.agents import GO_ON, HELD, RESUMED, WOKEN, times_connection
from benchmarks.driving import completed_runs, make_ann, start_agent, team_of
from benchmarks.figures import Figure, compute_percentile, wait_for_word
from benchmarks.scratch import Scratch
from checkpoints.models import Checkpoint
from checkpoints.postgresql.sql import run_sql
from tests.factories.driven_runs import advance_to_rest, make_run
from tests.factories.random_agents import Knobs, forget, load
from tests.harness.waiting import until

SIZES = ((10, 50), (51, 100), (101, 200))  # steps
INPUTS, TURNS = ("x0", "x1", "x2"), 10_000
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


def measure_rewinds(scratch: Scratch, agents: int) -> Iterator[Figure]:
    """Edit an input of so many random agents."""
    doorbell.silence()
    ann, rng, counts, times = make_ann(), random.Random(11), Counter[str](), list[float]()
    for number in range(agents):
        size = rng.randint(*SIZES[number % len(SIZES)])
        times.append(_edit_input(scratch.home, number, size, ann, counts))
    for what in ("steps", "effects"):
        before = {"a restart from the checkpoint before": f"{counts[f'{what} since'] / counts[what]:.0%}"}
        name = f"{what} that run again after an edit, of all on the path"
        yield Figure(name, counts[f"{what} again"] / counts[what] * 100, "%", parts=before)
    yield Figure("an edit of a run's input, p50", compute_percentile(times, 50), "ms", parts={"edits": f"{agents}"})


def _edit_input(folder: Path, number: int, size: int, ann: User, counts: Counter[str]) -> float:
    """Run an agent to its end, edit an input that some step reads, and go on; return the edit's milliseconds."""
    knobs = Knobs(
        steps=(size, size), effects=0.2, guarded=0.0, irreversible=0.0, gates=0.0, jumps=0.0, loops=0.0, ends=0.0,
        world=0.0, keyed=0.0, range=(2, 1000),
    )  # fmt: skip
    agent = load(folder, number, knobs)
    settings.HOLDPOINT_AGENTS = [agent.__module__]
    registry.forget()
    steps = registry.agent_named(agent.name).spec.steps
    readers = {name: [at for at, step in enumerate(steps) if name in step.reads] for name in INPUTS}
    edited = random.Random(number).choice([name for name, at in readers.items() if at] or ["x0"])
    run = advance_to_rest(make_run(agent.name, team=team_of(ann), x0=1, x1=1, x2=1), turns=TURNS)
    end, began = run.seq, time.perf_counter()
    rewind.edit(run, at=1, patch=[{"op": "replace", "path": f"/{edited}", "value": 7}], by=ann)
    took = (time.perf_counter() - began) * 1e3
    advance_to_rest(run, turns=TURNS)
    assert run.status == "completed", f"{run} is {run.status}: {run.reason}"
    forget(agent)
    again = Checkpoint.objects.filter(run=run, seq__gt=end + 1, kind="step").values_list("step", flat=True)
    effects = {step.name for step in steps if step.kind == "effect"}
    every = [step.name for step in steps]
    for what, names in (("", every), (" again", again), (" since", every[min(readers[edited], default=size) :])):
        counts[f"steps{what}"] += len(names)
        counts[f"effects{what}"] += sum(name in effects for name in names)
    return took
