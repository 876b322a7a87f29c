"""Django's PostgreSQL backend, with settings for each session and a pool that recovers quickly from an outage.

A session's settings are `OPTIONS["session"]`. They are set by a statement, once a connection is made: poolers refuse
or drop start-up parameters, and a setting that the server does not know yet would refuse every connection.

psycopg's pool reconnects after pauses that double, and replaces dead connections one by one, with such pauses too:
work would resume up to a minute after the server is back. Here the pauses start anew every few seconds while a
caller waits, and the first dead connection has all others replaced.

A connection is asked whether it is alive at most once a second: a server that ends closes the socket, which is seen
without asking, so that only one that hangs stays unnoticed for that second.
"""

from __future__ import annotations

import select
import time
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base, features
from psycopg import generators, pq
from psycopg.errors import error_from_result
from psycopg_pool import ConnectionPool

SINCE = {"transaction_timeout": 170000}  # settings that older servers do not know
ANSWERS_WITHIN = 5.0  # seconds for a pooled connection to prove that it is alive; a server that hangs closes none
ALIVE = 1.0  # seconds for which a connection that answered is not asked again, as long as nothing comes from the server
PREPARED = 400  # statements that a connection keeps planned; psycopg's hundred are fewer than the pages' and the API's
_SET = "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS session (name, value)"

Raw = psycopg.Connection[Any]
_answered: WeakKeyDictionary[Raw, float] = WeakKeyDictionary()  # when each last did, time.monotonic()


class DatabaseFeatures(features.DatabaseFeatures):
    """The oldest supported PostgreSQL: all migrations and tests pass on it."""

    minimum_database_version = (15,)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection of its own, or one from the pool."""

    features_class = DatabaseFeatures
    _connection_pools: dict[str, ConnectionPool[Raw]]  # Django's, by alias

    def get_connection_params(self) -> dict[str, Any]:
        """Return psycopg's parameters."""
        params: dict[str, Any] = super().get_connection_params()
        params.pop("session", None)
        return params

    def _configure_connection(self, connection: Raw) -> bool:
        """Set the session's settings. Called by Django or the pool for each new connection."""
        super()._configure_connection(connection)  # type: ignore[misc]
        session = {
            name: value
            for name, value in self.settings_dict["OPTIONS"].get("session", {}).items()
            if connection.info.server_version >= SINCE.get(name, 0)
        }
        connection.prepared_max = PREPARED
        connection.execute(_SET, [list(session), list(session.values())], prepare=False)
        return True

    def _configure_pooled(self, connection: Raw) -> None:
        self._configure_connection(connection)

    @property
    def pool(self) -> Any:
        """Return the process's pool, made here because Django's own cannot set how connections are checked."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias == NO_DB_ALIAS or not options:
            return None
        if self.alias not in self._connection_pools:
            made: ConnectionPool[Raw] = ConnectionPool(
                kwargs=self.get_connection_params() | {"autocommit": True},
                open=False,
                configure=self._configure_pooled,
                check=_check,
                reconnect_failed=_go_on,
                **options,
            )
            self._connection_pools.setdefault(self.alias, made)  # of two threads that make one, the first wins
        return self._connection_pools[self.alias]


def _check(connection: Raw) -> None:
    """Raise OperationalError if a pooled connection is dead or silent, and have all others replaced."""
    try:
        if time.monotonic() - _answered.get(connection, -ALIVE) < ALIVE and not _is_readable(connection):
            return
        connection.pgconn.send_query(b"")
        result = connection.wait(generators.execute(connection.pgconn), timeout=ANSWERS_WITHIN)[-1]
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
        _answered[connection] = time.monotonic()
    except psycopg.Error:
        pool = connection._pool
        if isinstance(pool, ConnectionPool):
            pool.drain()
        raise


def _is_readable(connection: Raw) -> bool:
    """Tell whether something came that was not asked for: the end of the connection, or a message before it."""
    looked = select.poll()  # not select(), which takes no descriptor above 1023
    looked.register(connection.pgconn.socket, select.POLLIN)
    return bool(looked.poll(0))


def _go_on(pool: ConnectionPool[Raw]) -> None:
    """Restart connecting with short pauses if a caller still waits; otherwise the next caller restarts it."""
    if pool.get_stats()["requests_waiting"]:
        pool.check()
