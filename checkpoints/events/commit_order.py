"""Reads events in an order that misses none, and measures the delay that this costs.

Ids of concurrent transactions do not commit in order: a reader at 3002 would never see 3001 when that commits
later. So an event stores its transaction's id, the cursor is (xid, id), and a reader stops below the oldest
transaction that is still open anywhere in the server. A transaction that stays open delays readers, but they miss
nothing.

It may be any transaction of the server, in any database: a forgotten `BEGIN; UPDATE` in a console, a prepared
transaction that was abandoned. HOLDPOINT_TRANSACTION_TIMEOUT ends Holdpoint's own; others are up to those who run them.
PostgreSQL names the holder to any role, but gives the start time only of the role's own sessions (or with
`pg_read_all_stats`). For others the wait of the oldest unreadable event is used, which is the delay of the readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self, cast

from django.db.models import BigIntegerField, Expression, F, Func, QuerySet
from django.db.models.fields.tuple_lookups import TupleGreaterThan, TupleLessThanOrEqual

from checkpoints.postgresql.sql import run_sql

from .event import Event


class Horizon(Func):
    """The oldest transaction still open, as seen by this statement."""

    template = "(pg_snapshot_xmin(pg_current_snapshot())::text::bigint + public.checkpoints_xid_offset())"
    output_field = BigIntegerField()


_COLUMNS = [field.attname for field in Event._meta.concrete_fields]
# A prepared statement, planned for any cursor: with EXISTS instead of ORDER BY and LIMIT it reads the whole table.
_AFTER = f"""
SELECT later.there, event.* FROM (SELECT (
    SELECT id FROM checkpoints_event WHERE (xid, id) > ($1, $2) AND xid >= {Horizon.template} ORDER BY xid, id LIMIT 1
) IS NOT NULL AS there) AS later LEFT JOIN LATERAL (
    SELECT {", ".join(_COLUMNS)} FROM checkpoints_event
    WHERE (xid, id) > ($1, $2) AND xid < {Horizon.template} ORDER BY xid, id LIMIT $3
) AS event ON true ORDER BY event.xid, event.id
"""  # noqa: S608 - constants
_NEWEST = f"SELECT xid, id FROM checkpoints_event WHERE xid < {Horizon.template} ORDER BY xid DESC, id DESC LIMIT 1"  # noqa: S608 - a constant


class Cursor(NamedTuple):
    """A place between events: everything up to and including this place has been read."""

    xid: int = 0
    id: int = 0

    def __str__(self) -> str:
        return f"{self.xid}.{self.id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "xid.id". Raises ValueError for anything else."""
        xid, _, id = text.partition(".")
        if not (xid.isascii() and xid.isdigit() and id.isascii() and id.isdigit() and len(text) < 40):
            raise ValueError(f"{text[:40]!r} is no cursor")
        made = cls(int(xid), int(id))
        if max(made) >= 2**63:
            raise ValueError(f"{text[:40]!r} is no cursor")
        return made

    @classmethod
    def from_event(cls, event: Event) -> Self:
        """Return the cursor after this event."""
        return cls(event.xid, event.pk)


def settled_events() -> QuerySet[Event]:
    """Return the events of transactions below the horizon, in order."""
    return Event.objects.filter(xid__lt=Horizon()).order_by("xid", "id")


def read_after(cursor: Cursor, limit: int = 500) -> tuple[list[Event], bool]:
    """Read the next events after a cursor, in order; tell also whether more is committed, below the horizon or not.

    Every web process runs this for every event, so it bypasses the ORM and is one statement.
    """
    found = run_sql(_AFTER, [*cursor, limit])
    events = [Event.from_db("default", _COLUMNS, row) for _, *row in found if row[0] is not None]
    return events, len(events) == limit or found[0][0]


def events_after(events: QuerySet[Event], cursor: Cursor | Sequence[Expression]) -> QuerySet[Event]:
    """Return the events after a cursor, or after the places of one in a prepared statement."""
    return events.filter(TupleGreaterThan((F("xid"), F("id")), cast(Sequence[int], cursor)))


def events_until(events: QuerySet[Event], cursor: Cursor) -> QuerySet[Event]:
    """Return the events up to a cursor, itself included."""
    return events.filter(TupleLessThanOrEqual((F("xid"), F("id")), cast(Sequence[int], cursor)))


def newest_cursor() -> Cursor:
    """Return the cursor after the newest settled event."""
    found = run_sql(_NEWEST, [])
    return Cursor(*found[0]) if found else Cursor()


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
