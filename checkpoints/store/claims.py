"""Who may write a run now.

A claim is a lease by the database's clock and a fencing token. Every claim raises the token, and every write
checks it, so that a worker which was thought dead and comes back writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from checkpoints.actors import SYSTEM, Actor
from checkpoints.errors import Fenced
from checkpoints.events import wakeup
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql, storable

TAKE_OVER_LEASE = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write one run. Position and `attempts` are as they were when it was made."""

    run_id: int
    token: int
    lease: float
    head: UUID | None
    seq: int
    next_step: str
    attempts: int
    at: datetime  # the database's clock when it was made
    monotonic: float = field(default_factory=time.monotonic, repr=False)

    def clock(self) -> datetime:
        """Return the database's time now, without asking it."""
        return self.at + timedelta(seconds=time.monotonic() - self.monotonic)


_EVENT = """
INSERT INTO checkpoints_event (kind, run_id, team_id, subject, version, actor, actor_name, data)
SELECT {kind}, id, team_id, 'run:' || id, version, {actor}, {name}, '{{}}'::bytea FROM moved
"""
_CLAIM = f"""
WITH moved AS (
  UPDATE checkpoints_run SET status = 'running', token = token + 1, worker = $3, attempts = attempts + 1,
    lease_until = clock_timestamp() + $4::float8 * interval '1 second', wake_at = NULL, reason = '',
    halt = false, version = version + 1
  WHERE id = $1 AND plan_id = ANY($2::bigint[]) AND (
    (status = 'queued' AND (wake_at IS NULL OR wake_at <= clock_timestamp()))
    OR (status = 'running' AND lease_until < clock_timestamp()))
  RETURNING *
), said AS ({_EVENT.format(kind="'run.running'", actor="$5", name="$6")})
SELECT token, head, seq, next_step, attempts, clock_timestamp() FROM moved
"""  # noqa: S608 - constants
_TAKE_OVER = f"""
WITH moved AS (
  UPDATE checkpoints_run SET status = 'running', token = token + 1, worker = $2, version = version + 1,
    lease_until = clock_timestamp() + $3::float8 * interval '1 second', wake_at = NULL, finished_at = NULL,
    halt = false, ending = '', ending_reason = '', ending_by = '', ending_by_name = '', attempts = 0, frozen_at = NULL
  WHERE id = $1
  RETURNING *
), said AS ({_EVENT.format(kind="'run.taken'", actor="$4", name="$5")})
SELECT token, head, seq, next_step, attempts, clock_timestamp() FROM moved
"""  # noqa: S608 - constants
_HALT = f"""
WITH moved AS (
  UPDATE checkpoints_run SET halt = true WHERE id = $1 AND status = 'running' AND NOT halt RETURNING *
), said AS ({_EVENT.format(kind="'run.halting'", actor="$2", name="$3")})
SELECT 1 FROM moved
"""  # noqa: S608 - constants
_HALTING = "SELECT halt FROM checkpoints_run WHERE id = $1 AND token = $2"
_RENEW = """
UPDATE checkpoints_run SET lease_until = clock_timestamp() + $3::float8 * interval '1 second'
WHERE id = $1 AND token = $2 AND status = 'running' RETURNING 1
"""
_RELEASE = f"""
WITH moved AS (
  UPDATE checkpoints_run SET status = $3::text, wake_at = $4, reason = $5, attempts = coalesce($8::int, attempts),
    lease_until = NULL, worker = '', halt = false, version = version + 1,
    frozen_at = CASE WHEN $9 THEN clock_timestamp() ELSE frozen_at END,
    finished_at = CASE WHEN $3::text IN ('completed', 'failed', 'cancelled') THEN clock_timestamp() END
  WHERE id = $1 AND token = $2 AND status = 'running'
  RETURNING *
), said AS ({_EVENT.format(kind="'run.' || $3::text", actor="$6", name="$7")})
SELECT 1 FROM moved
"""  # noqa: S608 - constants


def claim(run_id: int, *, plan_ids: Sequence[int], worker: str, lease: float, by: Actor = SYSTEM) -> Claim | None:
    """Take a run that is queued and due, or whose worker's lease ran out; None where there is nothing to take.

    Only runs of these plans: a worker never takes a version that it does not have. Counts one start of the next
    step, whatever becomes of it.
    """
    found = run_sql(_CLAIM, [run_id, list(plan_ids), worker[:120], lease, by.id, by.name])
    if not found:
        return None
    transaction.on_commit(wakeup.ring)
    return _made(run_id, lease, found[0])


def take_over(run: Run, by: Actor) -> Claim:
    """Claim a run for a page that rewinds, edits or cancels it, whatever its status; a running worker is fenced.

    In the caller's transaction, which ends with a `save` or `release` that sets what the run does next.
    """
    made = _made(run.pk, TAKE_OVER_LEASE, run_sql(_TAKE_OVER, [run.pk, by.id, TAKE_OVER_LEASE, by.id, by.name])[0])
    transaction.on_commit(wakeup.ring)
    return made


def ask_to_halt(run: Run, by: Actor) -> bool:
    """Ask the run's worker to let go of it after the step at hand; False where none works on it, or it was asked."""
    asked = bool(run_sql(_HALT, [run.pk, by.id, by.name]))
    transaction.on_commit(wakeup.ring)
    return asked


def halting(claim: Claim) -> bool:
    """Tell whether the worker with this claim is asked to let go of the run."""
    found = run_sql(_HALTING, [claim.run_id, claim.token])
    return bool(found and found[0][0])


def renew(claim: Claim) -> bool:
    """Extend the lease; False where somebody else has the run by now."""
    return bool(run_sql(_RENEW, [claim.run_id, claim.token, claim.lease]))


def release(
    claim: Claim,
    *,
    status: str,
    wake_at: datetime | None = None,
    reason: str = "",
    by: Actor,
    attempts: int | None = None,
    freeze: bool = False,
) -> None:
    """Let go of the run without a new checkpoint, with its event. Raises Fenced.

    `attempts` is kept unless given: a step that failed has still been started that often. `freeze`: what is stored
    does not verify, and the run is frozen where it ends as failed, now or once it has settled.
    """
    params = [claim.run_id, claim.token, status, wake_at, storable(reason[:300]), by.id, by.name, attempts, freeze]
    if not run_sql(_RELEASE, params):
        raise Fenced
    transaction.on_commit(wakeup.ring)


def _made(run_id: int, lease: float, row: tuple[object, ...]) -> Claim:
    token, head, seq, next_step, attempts, at = row
    return Claim(run_id, token, lease, head, seq, next_step, attempts, at)  # type: ignore[arg-type]
