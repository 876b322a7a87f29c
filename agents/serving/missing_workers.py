"""Tells whether a worker serves a plan's runs, and since when none does."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agents.models.worker import SILENT
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql

LATE = timedelta(seconds=10)  # how long a run may be due before its page says that no worker takes it
# For a plan `p.id`: whether a process that takes its runs is there, and when one was last heard of.
SERVED = f"""
SELECT coalesce(bool_or(NOT w.stopped AND w.heard_at > statement_timestamp() - interval '{SILENT.total_seconds()} s'),
  false) AS there, max(w.heard_at) AS heard FROM agents_worker w WHERE p.id = ANY(w.plans)
"""  # noqa: S608 - a constant
_OF_PLANS = f"SELECT p.id, s.there, s.heard FROM unnest($1::bigint[]) p(id) CROSS JOIN LATERAL ({SERVED}) s"  # noqa: S608
_OF_RUN = f"""
SELECT s.there, s.heard, CASE r.status
  WHEN 'queued' THEN coalesce(r.wake_at, r.created_at) WHEN 'running' THEN r.lease_until END, statement_timestamp()
FROM checkpoints_run r JOIN checkpoints_plan p ON p.id = r.plan_id CROSS JOIN LATERAL ({SERVED}) s WHERE r.id = $1
"""  # noqa: S608 - constants


@dataclass(frozen=True, slots=True)
class Service:
    """The service of a plan: a worker is there or not, and the time one was last heard of; None: never."""

    has_worker: bool
    heard: datetime | None


def of_plans(plans: Collection[int]) -> dict[int, Service]:
    """Return the service of each of these plans, by id. One statement."""
    found: Sequence[Any] = run_sql(_OF_PLANS, [list(plans)]) if plans else []
    return {plan: Service(there, heard) for plan, there, heard in found}


def describe_idle(run: Run) -> str:
    """Say why no worker has taken a run that is due; empty if it is not due, or only just became so."""
    return idle(run)[0]


def idle(run: Run) -> tuple[str, bool]:
    """Return what `describe_idle` says, and whether a worker for the run is there."""
    there, heard, due, now = run_sql(_OF_RUN, [run.pk])[0]
    named = f"{run.plan.agent} {run.plan.version}"
    if due is None or due > now or (there and due > now - LATE):
        return "", there
    if there:
        late = (
            f"due since {due:%H:%M:%S} UTC. A worker for {named} is running but has not taken the run: it "
            "is busy, or Redis does not answer."
        )
        return late, True
    if heard:
        gone = f"no worker has served {named} since {heard:%d %b %Y, %H:%M:%S} UTC. Start a worker: manage.py worker"
        return gone, False
    return f"no worker has ever served {named}. Start a worker: manage.py worker", False
