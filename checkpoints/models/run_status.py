"""The statements that change a run's status, each a guarded UPDATE with its event; no other module writes the status.

A statement whose guard does not match changes nothing and writes no event. A save begins with STEP or STOP and inserts
its checkpoint from their result, so that run, event and checkpoint are one statement (see
checkpoints.store.save_statements); a claim begins with CLAIM and returns the run from its result. The transitions are
listed at Run.Status.

A statement by which a run may end also counts it for the run that started it, and wakes that one once it has waited for
enough: the end and the waking are one commit. It locks the parent's row whatever that does, since a parent that falls
asleep at this moment is not seen to wait yet. Rows are locked from a child to its parent, never the other way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkpoints.events import wakeup
from checkpoints.postgresql.sql import run_sql


def _moved(
    change: str, guard: str, kind: str, by: str, *, columns: str = "*", version: str = "version", data: str = "'{}'"
) -> str:
    """Build the beginning of a statement: the update of the run, returning `columns` as `moved`, and its event."""
    return f"""
WITH moved AS (
  UPDATE checkpoints_run SET {change}
  WHERE {guard}
  RETURNING {columns}
), said AS (
  INSERT INTO checkpoints_event (kind, run_id, team_id, subject, version, actor, actor_name, data)
  SELECT {kind}, id, team_id, 'run:' || id, {version}, {by}, {data}::bytea FROM moved
)"""  # noqa: S608 - constants


def _taken(worker: str, lease: str) -> str:
    return f"""status = 'running', token = token + 1, version = version + 1, worker = {worker}, wake_at = NULL,
    awaited = 0, halt = false, lease_until = clock_timestamp() + {lease}::float8 * interval '1 second'"""


def _let_go(status: str) -> str:
    return f"""status = {status}, version = version + 1, worker = '', halt = false, lease_until = NULL,
    finished_at = CASE WHEN {status} IN ('completed', 'failed', 'cancelled') THEN clock_timestamp() END"""


def _counted(by: str) -> str:
    """Count a run that ended, for a parent that waits for it. A child that did not complete wakes its parent at once.

    A parent that waits for its children to be undone (`settling`) has all of them counted alike. Which row of the
    parent counts is read under its lock.
    """
    return f""", parent AS (
  SELECT p.id, p.status, p.awaited,
    CASE WHEN moved.status = 'completed' OR p.settling THEN p.awaited - 1 ELSE 0 END AS left_over
  FROM moved JOIN checkpoints_run p ON p.id = moved.parent_id
  WHERE moved.status IN ('completed', 'failed', 'cancelled') FOR NO KEY UPDATE OF p
), counted AS (
  UPDATE checkpoints_run p SET awaited = left_over,
    status = CASE WHEN left_over > 0 THEN p.status ELSE 'queued' END,
    version = p.version + (left_over = 0)::int,
    wake_at = CASE WHEN left_over > 0 THEN p.wake_at ELSE statement_timestamp() END
  FROM parent WHERE p.id = parent.id AND parent.status = 'waiting' AND parent.awaited > 0
  RETURNING p.id, p.team_id, p.version, p.status
), told AS (
  INSERT INTO checkpoints_event (kind, run_id, team_id, subject, version, actor, actor_name, data)
  SELECT 'run.queued', id, team_id, 'run:' || id, version, {by}, '{{}}'::bytea FROM counted WHERE status = 'queued'
)"""  # noqa: S608 - constants


CLAIMED = " SELECT token, head, seq, next_step, attempts, clock_timestamp()"
_DONE = " SELECT 1 FROM moved"

_CLAIMABLE = """id = $1 AND plan_id = ANY($2::bigint[]) AND (
    (status = 'queued' AND (wake_at IS NULL OR wake_at <= clock_timestamp()))
    OR (status = 'running' AND lease_until < clock_timestamp()))"""
_STARTED = f"{_taken('$3', '$4')}, attempts = attempts + 1, reason = ''"
CLAIM = _moved(_STARTED, _CLAIMABLE, "'run.running'", "$5, $6")

# A deadline that has passed is taken off, or it would end the run again at once, and undo what was moved away from.
_ANEW = f"""{_taken("$2", "$3")}, attempts = 0, finished_at = NULL, frozen_at = NULL,
    deadline = CASE WHEN deadline > clock_timestamp() THEN deadline END,
    settling = false, ending = '', ending_reason = '', ending_by = '', ending_by_name = ''"""
TAKE_OVER = _moved(_ANEW, "id = $1", "'run.taken'", "$4, $5") + CLAIMED + " FROM moved"

# By a program that says from which claim and head it goes on: so whoever wrote in between makes it too late.
_STANDS = "id = $1 AND token = $5 AND head = $6 AND status IN ('queued', 'running', 'waiting')"
_GOES_ON = f"{_taken('$2', '$3')}, attempts = 1, reason = ''"
CLAIM_AT = _moved(_GOES_ON, _STANDS, "'run.running'", "$4, $7") + CLAIMED + " FROM moved"

_RELEASED = f"""{_let_go("$3::text")}, wake_at = $4, reason = $5, awaited = $10::int,
    attempts = coalesce($8::int, attempts), frozen_at = CASE WHEN $9 THEN clock_timestamp() ELSE frozen_at END"""
_HELD = "id = $1 AND token = $2 AND status = 'running'"
RELEASE = _moved(_RELEASED, _HELD, "'run.' || $3::text", "$6, $7") + _counted("$6, $7") + _DONE

# The runs at rest are looked for without a lock; whoever went on meanwhile has a lease again.
_AT_REST = "id = ANY($1::bigint[]) AND status = 'running' AND lease_until < clock_timestamp()"
_RESTS = f"""{_let_go("'waiting'")}, reason = $2"""
REST = _moved(_RESTS, _AT_REST, "'run.waiting'", "$3, $4") + _DONE

RENEW = f"""
UPDATE checkpoints_run SET lease_until = clock_timestamp() + $3::float8 * interval '1 second'
WHERE {_HELD} RETURNING 1
"""  # noqa: S608 - constants

_RUNNING = "id = $1 AND status = 'running' AND NOT halt"
HALT = _moved("halt = true", _RUNNING, "'run.halting'", "$2, $3") + _DONE

_QUEUED = "status = 'queued', wake_at = statement_timestamp(), version = version + 1"
_WAITING = "id = $1 AND status = 'waiting'"
_WOKEN = " SELECT wake_at, version FROM moved"
WAKE = _moved(_QUEUED, _WAITING, "'run.queued'", "$2, $3") + _WOKEN
# Rows that others hold are left to them, so that this waits for nobody. One that was moved since this statement began
# is looked at again as it is then, by the lock and by the update.
_TIMER = "status = 'waiting' AND wake_at <= statement_timestamp()"
_TIMERS = f"""{_TIMER} AND id = ANY(ARRAY(
    SELECT id FROM checkpoints_run WHERE {_TIMER} ORDER BY wake_at LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED))"""  # noqa: S608 - a constant
_WOKEN_AT_ONCE = " SELECT id, token, plan_id, priority FROM moved"
WAKE_DUE = _moved(_QUEUED, _TIMERS, "'run.queued'", "$2, $3") + _WOKEN_AT_ONCE

# The new token fences a worker that has the run.
_CANCELLED = f"""{_let_go("'cancelled'")}, token = token + 1, wake_at = NULL, reason = $2"""
_LIVE = "id = $1 AND status IN ('queued', 'running', 'waiting')"
CANCEL = _moved(_CANCELLED, _LIVE, "'run.cancelled'", "$3, $4", data="$5") + _counted("$3, $4") + _DONE

_SAVED = "head = $1, plan_id = $3, seq = $4, next_step = $9, reason = $23, wake_at = $24"
_AT_HEAD = "id = $2 AND token = $12 AND head = $26 AND seq = $27 AND status = 'running'"
_LEASED = "version = version + 1, attempts = 1, lease_until = clock_timestamp() + $25::float8 * interval '1 second'"
_KINDS = "unnest(ARRAY['checkpoint.saved', 'run.' || $31::text])"
_BEGINNING = {"guard": _AT_HEAD, "by": "$28, $29", "columns": "id, team_id", "version": "$4"}
STEP = _moved(f"{_SAVED}, {_LEASED}", kind="'checkpoint.saved'", **_BEGINNING)
_STOPPED = f"{_SAVED}, {_let_go('$31::text')}, attempts = 0"
_WITH_PARENT = _BEGINNING | {"columns": "id, team_id, parent_id, status"}
STOP = _moved(_STOPPED, kind=_KINDS, **_WITH_PARENT) + _counted("$28, $29")


def move_runs(statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run one of these statements and wake the tailers after commit; return its result.

    WAKE_DUE and REST have many rows, the others have at most one.
    """
    moved = run_sql(statement, params)
    if moved:
        wakeup.ring_after_commit()
    return moved
