"""A dump of the database as plain rows, for the checker."""

from __future__ import annotations

import json
from typing import Any

import psycopg

Rows = list[dict[str, Any]]
Connection = psycopg.Connection[dict[str, Any]]

# Of outcomes, arguments are canonical JSON by action.
QUERIES = {
    "runs": """SELECT r.id, r.status, r.reason, r.next_step, r.frozen_at IS NOT NULL AS frozen,
        r.started_by_id AS starter, r.wake_at IS NOT NULL AS timed, r.awaited,
        r.status = 'waiting' AND r.wake_at < clock_timestamp() - interval '1 minute' AS overdue, p.agent, p.external,
        r.forked_from IS NOT NULL AS forked, r.parent_id AS parent, r.lineage, r.head::text
        FROM checkpoints_run r JOIN checkpoints_plan p ON p.id = r.plan_id ORDER BY r.id""",
    "gates": """SELECT g.id, g.run_id AS run, g.step, g.kind, g.status, g.checkpoint::text, g.title, p.quorum,
        p.separation FROM approvals_gate g JOIN approvals_policy p ON p.id = g.policy_id ORDER BY g.id""",
    "decisions": "SELECT id, gate_id AS gate, user_id AS user, verdict, counts FROM approvals_decision ORDER BY id",
    "outcomes": """SELECT o.id, o.gate_id AS gate, o.kind, o."then", convert_from(o.arguments, 'utf8') AS arguments,
        convert_from(o.answer, 'utf8') AS answer, o.to_run IS NOT NULL AS lets_run,
        array(SELECT decision_id FROM approvals_outcome_decisions d WHERE d.outcome_id = o.id) AS decisions
        FROM approvals_outcome o ORDER BY o.id""",
    "grants": "SELECT id, outcome_id AS outcome, action, effect FROM approvals_grant ORDER BY id",
    "effects": """SELECT id, run_id AS run, step, key, grant_id AS grant, action, undoes_id AS undoes,
        taken_from_id AS taken_from, status, attempts, irreversible, error,
        step = 'pay' AND convert_from(result, 'utf8') LIKE '%"payment"%null%' AS empty
        FROM agents_effect ORDER BY id""",
    "checkpoints": """SELECT run_id AS run, seq, id::text, parent::text, kind, step,
        extract(epoch FROM at)::float8 AS at
        FROM checkpoints_checkpoint ORDER BY run_id, seq""",
    "children": """SELECT run_id AS run, parent_id AS parent, step, encode(digest, 'hex') AS given, number,
        landings::text[], ordered, carried_out FROM agents_childlink ORDER BY id""",
    "signals": """SELECT id, run_id AS run, name, key, convert_from(value, 'utf8') AS value FROM agents_signal
        ORDER BY id""",
    "waits": """SELECT id, run_id AS run, base::text, head::text, step, kind, name, number, signal_id AS signal,
        extract(epoch FROM due)::float8 AS due, ended_by FROM agents_wait ORDER BY id""",
    "events": """SELECT id, xid, team_id AS team, kind, subject, run_id AS run, extract(epoch FROM at)::float8 AS at,
        actor LIKE 'user:%' AS by_person FROM checkpoints_event WHERE kind <> 'checkpoint.saved'
        ORDER BY id""",
}


def dumped(connection: Connection) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for name, query in QUERIES.items():
            found[name] = connection.execute(query.encode()).fetchall()
    for signal in found["signals"]:
        signal["value"] = json.loads(signal["value"])
    for outcome in found["outcomes"]:
        outcome["arguments"], outcome["answer"] = json.loads(outcome["arguments"]), json.loads(outcome["answer"])
    return found


def live(connection: Connection) -> int:
    [row] = connection.execute(
        b"SELECT count(*) AS n FROM checkpoints_run WHERE status IN ('queued', 'running', 'waiting')"
    ).fetchall()
    return int(row["n"])
