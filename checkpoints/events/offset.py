"""Transaction ids that never begin anew, whatever server a backup is restored into.

Readers go through events by (xid, id) and stop below the server's oldest open transaction (checkpoints.cursor). A new
server counts its transactions from the beginning, and one that was set back counts those once more that pages and
programs have read. So the database adds an offset to its server's count: the constant in `checkpoints_xid_offset()`,
which the default of `Event.xid` and the horizon both use, and which every backup takes along. After a restore
`manage.py restored` raises it, so that what follows is beyond all that was ever stored or read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg
from psycopg import sql

GAP = 2**32  # more transactions than a backup can be behind
PATIENCE = "10s"  # for those who are writing events

_AHEAD = """
SELECT (SELECT xid FROM checkpoints_event ORDER BY xid DESC, id DESC LIMIT 1)
    >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint + checkpoints_xid_offset()
"""
_NEXT = """
SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, checkpoints_xid_offset(),
    coalesce((SELECT xid FROM checkpoints_event ORDER BY xid DESC, id DESC LIMIT 1), 0)
"""
_SEQUENCES = """
SELECT sequence.oid::regclass::text, held.oid::regclass::text, field.attname
FROM pg_class AS sequence JOIN pg_depend AS owned ON owned.objid = sequence.oid AND owned.deptype IN ('a', 'i')
JOIN pg_class AS held ON held.oid = owned.refobjid
JOIN pg_attribute AS field ON field.attrelid = held.oid AND field.attnum = owned.refobjsubid
WHERE sequence.relkind = 'S' AND sequence.relnamespace = 'public'::regnamespace
"""


class Raised(NamedTuple):
    """What a restore changed: the offset before and after, and how many sequences go on at higher ids."""

    before: int
    after: int
    sequences: int


def stored_ahead(raw: psycopg.Connection[Any]) -> bool:
    """Tell whether events are stored that this server's count has not come to; not where there are no tables yet."""
    try:
        [(ahead,)] = raw.execute(_AHEAD).fetchall()
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedFunction):
        return False
    return bool(ahead)


def raise_offset(owner: psycopg.Connection, *, lost_ids: int) -> Raised:
    """Let transactions, and the ids of rows, go on beyond all that was given before the restore.

    `owner` is a session of the role that owns the tables. `lost_ids` is how many runs, gates and other rows may have
    been made after the backup: none of their ids is given again, so that no link, note or idempotency key of theirs
    means another row. Safe to repeat, and beside processes that read. Raises psycopg.errors.LockNotAvailable where
    events are being written.
    """
    with owner.transaction():
        owner.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(PATIENCE))
        owner.execute("LOCK TABLE checkpoints_event IN ACCESS EXCLUSIVE MODE")
        (count, before, newest) = owner.execute(_NEXT).fetchone() or (0, 0, 0)
        after = max(newest, count + before) + GAP - count
        function = "CREATE OR REPLACE FUNCTION checkpoints_xid_offset() RETURNS bigint LANGUAGE sql STABLE RETURN {}"
        owner.execute(sql.SQL(function + "::bigint").format(sql.Literal(after)))
        found = owner.execute(_SEQUENCES).fetchall()
        for sequence, table, column in found:
            _skip(owner, sequence, table, column, lost_ids)
    return Raised(before, after, len(found))


def _skip(owner: psycopg.Connection, sequence: str, table: str, column: str, lost_ids: int) -> None:
    """Set a sequence past its own last id and past the greatest that is stored, which replication leaves behind it."""
    raised = "SELECT setval(%s, greatest(coalesce(max({}), 0), (SELECT last_value FROM {})) + %s) FROM {}"
    names = sql.Identifier(column), sql.SQL(sequence), sql.SQL(table)  # quoted by PostgreSQL
    owner.execute(sql.SQL(raised).format(*names), [sequence, lost_ids])
