"""Bounds how long the sweeper waits for what others keep locked, and goes on without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError
from psycopg import errors

from checkpoints.postgresql.sql import run_sql

HELD_UP = (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected)  # by others; the database is there
log = structlog.get_logger()


@contextmanager
def limited(longest: str) -> Iterator[None]:
    """Limit for how long a statement in the block waits for a row or a table that somebody keeps locked.

    No statement is prepared: it is not known yet whether the session is this process's own.
    """
    run_sql("SELECT set_config('lock_timeout', $1, false)", [longest], prepare=False)
    try:
        yield
    finally:
        with suppress(OperationalError, InterfaceError):  # a connection that is lost has kept nothing
            run_sql("RESET lock_timeout", [], prepare=False)


def unless_held_up(act: Callable[[], Any], part: str) -> Any:
    """Call `act` and return its result; None, logged, where a lock of others stopped it."""
    try:
        return act()
    except OperationalError as error:
        if not isinstance(error.__cause__, HELD_UP):
            raise
        log.warning("sweeper.part_held_up", part=part, error=str(error))
        return None
