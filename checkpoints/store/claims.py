"""Claims: the right to write a run.

A claim is a lease by the database's clock and a fencing token. Every claim raises the token, and every write checks
it, so that a worker that was thought dead and comes back writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group
from django.db import connection

from checkpoints.actors import SYSTEM, Actor
from checkpoints.errors import Fenced
from checkpoints.models import Run, run_status
from checkpoints.models.run_status import move_runs
from checkpoints.postgresql.sql import make_storable, run_sql

TAKE_OVER_LEASE = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write one run. Position and `attempts` are those at the time of the claim."""

    run_id: int
    token: int
    lease: float
    head: UUID | None
    seq: int
    next_step: str
    attempts: int
    at: datetime  # the database's clock at the time of the claim
    monotonic: float = field(default_factory=time.monotonic, repr=False)

    def clock(self) -> datetime:
        """Return the database's current time without a query."""
        return self.at + timedelta(seconds=time.monotonic() - self.monotonic)


@dataclass(frozen=True, slots=True)
class ClaimedRun(Claim):
    """A claim with the run as it left it, with its team."""

    run: Run = field(kw_only=True, repr=False, compare=False)


_NAMES = [field.attname for field in Run._meta.concrete_fields]
_ROW = ", ".join(f"moved.{field.column}" for field in Run._meta.concrete_fields)
_CLAIM = f"""{run_status.CLAIM}{run_status.CLAIMED}, team.id, team.name, {_ROW}
FROM moved JOIN auth_group team ON team.id = moved.team_id
"""
_HALTING = "SELECT halt FROM checkpoints_run WHERE id = $1 AND token = $2"


def claim(run_id: int, *, plan_ids: Sequence[int], worker: str, lease: float, by: Actor = SYSTEM) -> ClaimedRun | None:
    """Claim a run that is queued and due, or whose worker's lease ran out; None if it is neither.

    Only a run of these plans: a worker never takes a version that it does not have. Counts one start of the next
    step, whatever its outcome.
    """
    found = move_runs(_CLAIM, [run_id, list(plan_ids), worker[:120], lease, by.id, by.name])
    if not found:
        return None
    *claimed, team, name = found[0][:8]
    run = Run.from_db(connection.alias, _NAMES, found[0][8:])
    run.team = Group.from_db(connection.alias, ["id", "name"], [team, name])
    return ClaimedRun(run_id, *_position(lease, claimed), run=run)


def claim_at(run_id: int, token: int, head: UUID, *, worker: str, lease: float, by: Actor) -> Claim | None:
    """Claim a live run as it stood with this token and this head; None if it has moved, or ended, since."""
    found = move_runs(run_status.CLAIM_AT, [run_id, worker[:120], lease, by.id, token, head, by.name])
    return Claim(run_id, *_position(lease, found[0])) if found else None


def rest(run_ids: Sequence[int], *, reason: str, by: Actor) -> int:
    """Let those of these runs wait whose lease ran out; return how many."""
    return len(move_runs(run_status.REST, [list(run_ids), make_storable(reason[:300]), by.id, by.name]))


def take_over(run: Run, by: Actor) -> Claim:
    """Claim a run, whatever its status, for a page that rewinds, edits or cancels it; fence its worker.

    Runs in the caller's transaction, which ends with a `save` or `release` that sets what the run does next.
    """
    (taken,) = move_runs(run_status.TAKE_OVER, [run.pk, by.id, TAKE_OVER_LEASE, by.id, by.name])
    return Claim(run.pk, *_position(TAKE_OVER_LEASE, taken))


def ask_to_halt(run: Run, by: Actor) -> bool:
    """Ask the run's worker to release it after the current step; False if no worker runs it, or was asked before."""
    return bool(move_runs(run_status.HALT, [run.pk, by.id, by.name]))


def halting(claim: Claim) -> bool:
    """Tell whether the worker with this claim was asked to release the run."""
    found = run_sql(_HALTING, [claim.run_id, claim.token])
    return bool(found and found[0][0])


def renew(claim: Claim) -> bool:
    """Extend the lease; False if the claim is no longer valid."""
    return bool(run_sql(run_status.RENEW, [claim.run_id, claim.token, claim.lease]))


def release(
    claim: Claim,
    *,
    status: str,
    wake_at: datetime | None = None,
    reason: str = "",
    by: Actor,
    attempts: int | None = None,
    freeze: bool = False,
    awaited: int = 0,
) -> None:
    """Give up the claim without a new checkpoint, with the event. Raises Fenced.

    `attempts` is kept unless given: it also counts starts of a step that failed. `freeze`: stored data does not
    verify, so the run is frozen if it ends as failed, now or once its effects are settled. `awaited`: how many of its
    children have to end before a waiting run is queued.
    """
    words = make_storable(reason[:300])
    params = [claim.run_id, claim.token, status, wake_at, words, by.id, by.name, attempts, freeze, awaited]
    if not move_runs(run_status.RELEASE, params):
        raise Fenced


def _position(lease: float, row: Sequence[Any]) -> tuple[Any, ...]:
    token, *more = row
    return token, lease, *more
