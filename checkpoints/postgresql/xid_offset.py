"""The offset of transaction ids: keeps them rising, whatever server a backup is restored into.

Readers read events by (xid, id) and stop below the server's oldest open transaction (events/commit_order.py). A new
server counts its transactions from the beginning, and one that was set back reuses ids that pages and programs have
read. So the database adds an offset to its server's count: the constant in `checkpoints_xid_offset()`, which the
default of `Event.xid` and the horizon both use, and which every backup contains. After a restore `manage.py restored`
raises it, so that new ids are beyond all that were ever stored or read: the time is part of the offset, since the same
backup may be restored a second time.
"""

from __future__ import annotations

import psycopg
from django.db import connection
from psycopg import sql

from checkpoints.errors import ImplausibleEvent, NotThatDatabase, RestoredDatabase

from .sql import run_sql

PER_SECOND = 100_000  # more transactions than a server runs
SINCE = 1735689600  # 2025-01-01
GAP = 2**32  # a margin for wrong clocks
GREATEST = 2**62
PATIENCE = "10s"  # to wait for transactions that write events

_NEWEST = "(SELECT xid FROM public.checkpoints_event ORDER BY xid DESC, id DESC LIMIT 1)"
_COUNT = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
_NEXT_XID = f"{_COUNT} + public.checkpoints_xid_offset()"
_AHEAD = f"SELECT {_NEWEST} >= {_NEXT_XID}"
_NEXT = f"""
SELECT {_COUNT}, public.checkpoints_xid_offset(), coalesce({_NEWEST}, 0),
    (extract(epoch FROM clock_timestamp())::bigint - {SINCE}) * {PER_SECOND}
"""  # noqa: S608 - constants
_WHICH = "SELECT oid, pg_postmaster_start_time() FROM pg_database WHERE datname = current_database()"
_SEQUENCES = """
SELECT sequence.oid::regclass::text, held.oid::regclass::text, field.attname
FROM pg_class AS sequence JOIN pg_depend AS owned ON owned.objid = sequence.oid AND owned.deptype IN ('a', 'i')
JOIN pg_class AS held ON held.oid = owned.refobjid
JOIN pg_attribute AS field ON field.attrelid = held.oid AND field.attnum = owned.refobjsubid
WHERE sequence.relkind = 'S' AND sequence.relnamespace = 'public'::regnamespace
"""


def refuse_ahead(read: int = 0) -> None:
    """Refuse to go on if an event that is stored, or was read, is ahead of this server's count.

    `read` is the transaction of the newest event read. Raises RestoredDatabase.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors:
        if stored_ahead(connection.connection):
            raise RestoredDatabase
    if read and read >= count():
        raise RestoredDatabase


def count() -> int:
    """Return this server's count with the offset: every stored event is of a transaction below it.

    The horizon may be lower, so not all of those events can be read yet.
    """
    [(found,)] = run_sql(f"SELECT {_NEXT_XID}", [])
    return int(found)


def stored_ahead(raw: psycopg.Connection) -> bool:
    """Tell whether stored events are ahead of this server's count; False if there are no tables yet."""
    try:
        [(ahead,)] = raw.execute(_AHEAD).fetchall()
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedFunction):
        return False
    return bool(ahead)


def raise_offset(owner: psycopg.Connection, *, lost_ids: int) -> None:
    """Raise the offset and the sequences, so that new ids are beyond all that were given before the restore.

    `owner` is a session of the role that owns the tables. `lost_ids` is how many runs, gates and other rows may have
    been made after the backup: none of their ids is reused, so that no link, note or idempotency key of theirs
    refers to another row. Safe to repeat, and beside processes that read. Raises psycopg.errors.LockNotAvailable if
    events are being written, and ImplausibleEvent.
    """
    with owner.transaction():
        owner.execute("SET LOCAL search_path = pg_catalog, public")
        owner.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(PATIENCE))
        owner.execute("LOCK TABLE public.checkpoints_event IN ACCESS EXCLUSIVE MODE")
        [(count, before, newest, by_clock)] = owner.execute(_NEXT).fetchall()
        if newest >= GREATEST:
            raise ImplausibleEvent(newest)
        after = max(newest, count + before, by_clock) + GAP - count
        function = "FUNCTION public.checkpoints_xid_offset() RETURNS bigint LANGUAGE sql STABLE RETURN {}::bigint"
        owner.execute(sql.SQL(f"CREATE OR REPLACE {function}").format(sql.Literal(after)))
        for sequence, table, column in owner.execute(_SEQUENCES).fetchall():
            _skip(owner, sequence, table, column, lost_ids)


def refuse_another(owner: psycopg.Connection) -> None:
    """Refuse an owner's session that is not on this process's database. Raises NotThatDatabase."""
    with connection.cursor() as cursor:
        cursor.execute(_WHICH)
        if owner.execute(_WHICH).fetchall() != cursor.fetchall():
            raise NotThatDatabase


def _skip(owner: psycopg.Connection, sequence: str, table: str, column: str, lost_ids: int) -> None:
    """Raise a sequence above its last id and above the greatest stored id, which replication may have left ahead."""
    raised = "SELECT setval(%s, greatest(coalesce(max({}), 0), (SELECT last_value FROM {})) + %s) FROM {}"
    names = sql.Identifier(column), sql.SQL(sequence), sql.SQL(table)  # quoted by PostgreSQL
    owner.execute(sql.SQL(raised).format(*names), [sequence, lost_ids])
