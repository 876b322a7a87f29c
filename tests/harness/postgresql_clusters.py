"""PostgreSQL servers beside the session's own: what is dumped, restored and set back in tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from config.local.servers import DATABASE, OWNER, Postgres, binaries, make_database
from tests.harness.session import FAST, Session, copied

TRANSACTIONS = "DO $$ BEGIN FOR n IN 1..{} LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"


@contextmanager
def serving(data: Path, sockets: Path) -> Iterator[Postgres]:
    """Run a server on a data folder, made where there is none. Sockets' paths are short: give a short one."""
    server = Postgres(data, sockets, FAST)
    with (data.parent / f"{data.name}.log").open("wb") as log:
        server.start(log)
        try:
            yield server
        finally:
            server.stop()


def migrated_copy(session: Session, to: Path) -> Path:
    return copied(session.migrated.data, to)


def run_ahead(server: Postgres, transactions: int) -> None:
    """Let a server count so many transactions, as one does that has worked for a while."""
    with psycopg.connect(server.url(DATABASE, OWNER), autocommit=True) as connection:
        connection.execute(TRANSACTIONS.format(transactions))


def dumped_and_restored(old: Postgres, new: Postgres, folder: Path) -> None:
    """Take a dump of one server's database and restore it into a new server."""
    make_database(new)
    file = folder / "holdpoint.dump"
    tools = binaries()
    subprocess.run([tools / "pg_dump", "-Fc", "-f", file, old.url(DATABASE)], check=True)
    subprocess.run([tools / "pg_restore", "--exit-on-error", "-d", new.url(DATABASE), file], check=True)
