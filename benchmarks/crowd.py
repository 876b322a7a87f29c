"""Fills the database like a large deployment's: ended and waiting runs, open gates of many teams, and events.

The rows are for lists, filters, counts and indexes, and have no checkpoints. PostgreSQL makes them itself, without
triggers, and builds a table's indexes again once the rows are there, which takes a fraction of keeping them up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from benchmarks.scratch import Scratch
from checkpoints.postgresql import xid_offset

TEAMS = 20


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
