"""Counts the statements that reach PostgreSQL, whoever sends them, by having the server log each."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from benchmarks.parts.scratch import Scratch

# One line each; a statement's further lines have no such beginning.
_LINE = re.compile(rb"^\S+ \S+ \S+ \[\d+\] LOG:  (?:statement|execute [^:]+):\s+(\w+)", re.MULTILINE)
_ENDS = {b"BEGIN", b"COMMIT", b"ROLLBACK"}
_SETTLED = 0.3  # seconds until every session has taken up the setting


@dataclass
class Sent:
    """The statements that were sent, without those that begin and end transactions, and the transactions."""

    statements: int = 0
    transactions: int = 0


@contextmanager
def sent(scratch: Scratch) -> Iterator[Sent]:
    """Count what is sent inside the block, once it has ended."""
    log, counted = scratch.home / "postgres.log", Sent()
    _configure(scratch, "ALTER SYSTEM SET log_statement = 'all'", "ALTER SYSTEM SET log_parameter_max_length = 0")
    begun = log.stat().st_size
    try:
        yield counted
    finally:
        with log.open("rb") as file:
            file.seek(begun)
            words = _LINE.findall(file.read())
        counted.statements = sum(word.upper() not in _ENDS for word in words)
        counted.transactions = sum(word.upper() == b"BEGIN" for word in words)
        _configure(scratch, "ALTER SYSTEM RESET log_statement", "ALTER SYSTEM RESET log_parameter_max_length")


def _configure(scratch: Scratch, *statements: str) -> None:
    with psycopg.connect(scratch.admin_url, autocommit=True) as connection:
        for statement in (*statements, "SELECT pg_reload_conf()"):
            connection.execute(statement)
    time.sleep(_SETTLED)
