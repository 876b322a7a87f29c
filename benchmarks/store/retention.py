"""Measures pruning: "keep the last 20 of 1,000, and what is named", with writers at work.

The argument is the number of runs of a thousand checkpoints. One is written through the store; the others are its
copies, each with digests of its own, so that every chain verifies. Two writers save into runs of their own at a steady
pace, alone first and then during the prune.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any
from uuid import UUID

import psutil
from psycopg import Connection

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile
from benchmarks.parts.scratch import Scratch

STEPS = 1000  # checkpoints of a run
LAST = 20
NAMED = 500  # the number of the checkpoint that is named
WRITERS = 2
PACE = 0.004  # seconds from one save of a writer to the next
ALONE = 8.0  # seconds that the writers are measured without a prune
AIM_RATE, AIM_RATIO = 20_000, 2.0


def main(runs: int = 500) -> None:
    """Seed runs, measure the writers alone, then during a prune, and verify some runs."""
    with Scratch() as scratch:
        began = time.monotonic()
        first, agent = seed(runs, scratch.environment["DATABASE_URL"])
        print(f"seeded {runs * STEPS:,} checkpoints in {time.monotonic() - began:.0f} s")
        alone = written(start_writers(agent, ALONE), "alone")
        measure(runs, agent, alone)
        check(first)


def measure(runs: int, agent: str, alone: float) -> None:
    """Measure the prune, with the writers at work from before it until after."""
    from checkpoints.actors import SYSTEM
    from checkpoints.models import Prune, RetentionPolicy
    from checkpoints.retention import policies, prunes

    rule = RetentionPolicy(
        agent=agent, keep_last=LAST, keep_gates=False, keep_decisions=False, keep_finals=False
    )  # fmt: skip
    policies.write(rule, by=SYSTEM)
    began = time.monotonic()
    prune = prunes.begin(by=SYSTEM)
    prunes.look(prune)
    print(f"dry run of {runs * STEPS:,} checkpoints: {time.monotonic() - began:.1f} s")
    prunes.order(prune, seen=bytes(prune.digest), by=SYSTEM)
    writers = start_writers(agent, 3600.0)
    began, busy, memory = time.monotonic(), time.process_time(), [resident()]
    while not prunes.apply(prune, seconds=1.0):
        memory.append(resident())
    took, busy = time.monotonic() - began, time.process_time() - busy
    memory.append(resident())
    for writer in writers:
        writer.terminate()
    meanwhile = written(writers, "meanwhile")
    prune = Prune.objects.get(pk=prune.pk)
    beside = {"all": f"{prune.removed:,} in {took:.1f} s"}
    mark("checkpoints pruned", prune.removed / took, "/s", least=AIM_RATE, beside=beside)
    print(f"of that {busy:.1f} s at work in the pruner itself; the machine's load is {os.getloadavg()[0]:.1f}")
    print(f"{prune.freed / 2**20:,.0f} MiB freed; memory {memory[0]:.0f} MB, {max(memory):.0f} MB at most")
    waits = {"alone": f"{alone:.2f} ms", "meanwhile": f"{meanwhile:.2f} ms"}
    mark("writers' p99 beside a prune over that alone", meanwhile / alone, most=AIM_RATIO, beside=waits)


def resident() -> float:
    """Return the resident memory of this process in MB."""
    return float(psutil.Process().memory_info().rss) / 1e6


def seed(runs: int, url: str) -> tuple[int, str]:
    """Write one run through the store and copy it; return the first copy's id, and the agent's name."""
    from checkpoints.layout.rows import CheckpointRow
    from checkpoints.models import Run
    from checkpoints.postgresql.sql import run_sql

    run = template()
    columns = ", ".join(CheckpointRow._fields)
    rows = [
        CheckpointRow._make(row)
        for row in run_sql(f"SELECT {columns} FROM checkpoints_checkpoint WHERE run_id = $1 ORDER BY seq", [run.pk])
    ]
    chunks = run_sql("SELECT digest, codec, payload FROM checkpoints_chunk WHERE lineage = $1", [run.pk])
    first = run.pk + 1
    copies(run, runs)
    with Connection.connect(url, autocommit=False) as connection:
        for number in range(first, first + runs):
            copy_run(connection, number, rows, chunks)
    with Connection.connect(url.replace("holdpoint_app", "holdpoint_owner"), autocommit=True) as owner:
        owner.execute("VACUUM ANALYZE checkpoints_checkpoint")
    assert Run.objects.count() == runs + 1
    return first, run.plan.agent


def template() -> Any:
    """Write a run of a thousand steps: a growing list of messages beside a document and a counter."""
    from checkpoints import store
    from checkpoints.store import Header
    from checkpoints.values.ops import Append
    from tests.factories.stored_runs import begin

    run, claim, head = begin(messages=[], doc="d" * 5000, n=0)
    for n in range(1, STEPS):
        header = Header("step", "one", "one" if n < STEPS - 1 else "", n, 1, n.to_bytes(32), b"c" * 32, took_us=n)
        writes = {"messages": Append([f"message {n} " + f"{n * 7919 % 100003} words " * 12]), "n": n}
        status = "running" if n < STEPS - 1 else "completed"
        head = store.save(head, writes, claim=claim, header=header, status=status)
    return run


def copies(run: Any, count: int) -> None:
    """Insert copies of the run's row, with the next ids after `run`."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO checkpoints_run (lineage, plan_id, team_id, title, status, version, head, seq, next_step,
            token, attempts, reason, started_as, environment, halt, settling, ending, ending_reason, ending_by,
            ending_by_name, worker, created_at)
            SELECT id + n, plan_id, team_id, title, 'completed', 1, NULL, seq, next_step, token, 0, '', started_as,
            environment, false, false, '', '', '', '', '', now()
            FROM checkpoints_run, generate_series(1, %s) AS n WHERE id = %s""",
            [count, run.pk],
        )


def copy_run(connection: Connection[Any], number: int, rows: list[Any], chunks: list[Any]) -> None:
    """Copy the template's rows to run `number`, with a chain of its own and one named checkpoint."""
    from checkpoints.layout import payloads
    from checkpoints.layout.rows import CheckpointRow, new_id

    made, parent = [], None
    for row in rows:
        copy = row._replace(
            id=new_id(), run_id=number, parent=parent and parent.id, parent_digest=parent and parent.digest
        )
        copy = copy._replace(digest=copy.header_digest())
        parent = copy._replace(checksum=copy.expected_checksum())
        made.append(parent)
    assert parent is not None
    with connection.cursor() as cursor:
        with cursor.copy(
            f"COPY checkpoints_checkpoint ({', '.join(CheckpointRow._fields)}) FROM STDIN (FORMAT BINARY)"
        ) as copy:
            copy.set_types(TYPES)
            for each in made:
                copy.write_row(each)
        sums = [(number, *chunk, payloads.chunk_checksum(number, *chunk)) for chunk in chunks]
        cursor.executemany(
            "INSERT INTO checkpoints_chunk (lineage, digest, codec, payload, checksum) VALUES (%s, %s, %s, %s, %s)",
            sums,
        )
        cursor.execute("UPDATE checkpoints_run SET head = %s WHERE id = %s", [parent.id, number])
        named: UUID = made[NAMED - 1].id
        cursor.execute(
            """INSERT INTO checkpoints_hold (run_id, checkpoint, kind, subject, reason, by, freed_by, created_at)
            VALUES (%s, %s, 'name', %s, 'half', 'system', '', now())""",
            [number, named, f"name:{named}"],
        )


TYPES = ["uuid", "int8", "int8", "int4", "uuid", "bytea", "varchar", "varchar", "varchar", "int4", "int2", "int8"]
TYPES += ["bytea", "bytea", "timestamptz", "int8", "bytea", "bytea", "int4", "int2", "bytea", "bytea"]


def start_writers(agent: str, seconds: float) -> list[subprocess.Popen[str]]:
    """Start processes that save at a steady pace for that long; each prints its latencies in milliseconds."""
    command = [sys.executable, "-m", "benchmarks.store.retention", "write", str(seconds)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(WRITERS)]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "at work\n"
    return writers


def written(writers: list[subprocess.Popen[str]], when: str) -> float:
    """Print the writers' measurements; return their p99 in milliseconds."""
    found = [float(line) for writer in writers for line in writer.communicate()[0].split()]
    p50, p99 = percentile(found, 50), percentile(found, 99)
    print(f"{WRITERS} writers {when}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, n={len(found)}")
    return p99


def write(seconds: float) -> None:
    """Run one writer: save into a run of its own at a steady pace."""
    import django

    django.setup()
    from checkpoints import store
    from checkpoints.values.ops import Append
    from tests.factories.stored_runs import STEP, begin

    _, claim, head = begin(messages=[], n=0)
    until, due, told = time.monotonic() + seconds, time.monotonic(), list[int]()
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    for n in range(10**9):
        began = time.monotonic()
        if began > until or told:
            break
        head = store.save(head, {"messages": Append([f"message {n}"]), "n": n}, claim=claim, header=STEP)
        if n == 50:  # those before it prepare statements
            print("at work", flush=True)
        elif n > 50:
            print((time.monotonic() - began) * 1000)
        due = max(due + PACE, time.monotonic() - PACE)
        time.sleep(max(0.0, due - time.monotonic()))


def check(first: int) -> None:
    """Check that some of the runs still verify and load."""
    from checkpoints import store
    from checkpoints.audit.verify_runs import verify_run
    from checkpoints.models import Run

    for run in Run.objects.filter(pk__gte=first).order_by("pk")[:3]:
        assert verify_run(run) == []
        assert store.load(run).state["n"] == STEPS - 1
        assert run.checkpoints.count() == LAST + 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(float(sys.argv[2]))
    else:
        main(*map(int, sys.argv[1:]))
