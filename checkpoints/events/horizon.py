"""Measures the delay of readers of events, and names the transaction that causes it.

Readers stop below the oldest transaction that has written and is still open (see `cursor`). It may be any transaction
of the server, in any database: a forgotten `BEGIN; UPDATE` in a console, a prepared transaction that was abandoned.
HOLDPOINT_TRANSACTION_TIMEOUT ends Holdpoint's own; others are up to those who run them.

PostgreSQL names the holder to any role, but gives the start time only of the role's own sessions (or with
`pg_read_all_stats`). For others the wait of the oldest unreadable event is used, which is the delay of the readers.
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
    """The delay of readers in seconds, and the transaction that causes it; 0 and "" if none does."""

    seconds: float = 0.0
    holder: str = ""


def horizon_age() -> HorizonAge:
    """Ask PostgreSQL which transaction delays readers of events, and for how long."""
    found = run_sql(_HOLDER, [])
    return HorizonAge(*found[0]) if found else HorizonAge()
