"""How long readers of events are held back, and by whom.

Readers stop below the oldest transaction that has written and is still open (see `cursor`). That may be anybody's in
the whole server, in whatever database: a forgotten `BEGIN; UPDATE` in somebody's console, a transaction that was
prepared and left. Holdpoint's own are ended by HOLDPOINT_TRANSACTION_TIMEOUT; others by whoever runs them.

PostgreSQL tells a role who holds, and since when only of its own sessions (or with `pg_read_all_stats`). For others
the wait of the oldest event that may not be read yet is taken, which is what readers feel.
"""

from __future__ import annotations

from typing import NamedTuple

from checkpoints.postgresql.sql import run_sql

from .commit_order import Horizon

_HOLDER = f"""
WITH oldest AS (
  SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint % 4294967296 AS xid,
    (SELECT at FROM checkpoints_event WHERE xid >= {Horizon.template} ORDER BY xid, id LIMIT 1) AS unread
)
SELECT extract(epoch FROM clock_timestamp() - since)::float8, holder FROM (
  SELECT coalesce(xact_start, unread),
    format('process %s of database %s (role %s%s)', pid, datname, usename, ', ' || nullif(application_name, ''))
  FROM oldest, pg_stat_activity WHERE backend_xid::text::bigint = oldest.xid
  UNION ALL
  SELECT prepared, format('prepared transaction %L of database %s (role %s)', gid, database, owner)
  FROM oldest, pg_prepared_xacts WHERE transaction::text::bigint = oldest.xid
) AS found (since, holder)
WHERE since IS NOT NULL
"""  # noqa: S608 - constants


class HorizonAge(NamedTuple):
    """How long readers have been held back, in seconds, and by which transaction; 0 and "" where by none."""

    seconds: float = 0.0
    holder: str = ""


def horizon_age() -> HorizonAge:
    """Ask PostgreSQL what holds readers of events back."""
    found = run_sql(_HOLDER, [])
    return HorizonAge(*found[0]) if found else HorizonAge()
