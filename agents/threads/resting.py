"""Lets threads rest: nobody tells a checkpointer that an invocation is over, so its run waits once its lease is."""

from __future__ import annotations

from checkpoints.actors import SYSTEM
from checkpoints.postgresql.sql import run_sql
from checkpoints.store import claims

AT_ONCE = 200
RESTS = "The thread waits for its next message."
_OVER = f"""
SELECT r.id FROM checkpoints_run r JOIN agents_graphthread t ON t.run_id = r.id
WHERE r.status = 'running' AND r.lease_until < clock_timestamp() ORDER BY r.id LIMIT {AT_ONCE}
"""  # noqa: S608 - a constant


def rest() -> int:
    """Let the runs of threads wait that nobody has written for a while; return how many. Their claims stay valid."""
    found = [run for (run,) in run_sql(_OVER, [])]
    return claims.rest(found, reason=RESTS, by=SYSTEM) if found else 0
