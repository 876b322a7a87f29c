"""python -m holdpoint.langgraph import DATABASE_URL THREAD… : brings threads that PostgresSaver keeps.

Needs langgraph-checkpoint-postgres. Address and token of the server are HOLDPOINT_URL and HOLDPOINT_TOKEN.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ..errors import BadToken, HoldpointError, Unreachable
from .importing import import_thread
from .saver import HoldpointSaver


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser("python -m holdpoint.langgraph", description="Work with threads of LangGraph.")
    commands = parser.add_subparsers(dest="command", required=True)
    bring = commands.add_parser("import", help="bring threads that PostgresSaver keeps")
    bring.add_argument("database", help="the URL of the PostgreSQL that keeps them")
    bring.add_argument("thread", nargs="*", help="the ids of the threads; none with --all")
    bring.add_argument("--all", action="store_true", help="bring all threads")
    bring.add_argument("--allow", action="append", default=[], metavar="MODULE:CLASS",
                       help="a class that the saved states hold beside LangGraph's own")  # fmt: skip
    given = parser.parse_args(arguments)
    if given.all == bool(given.thread):
        parser.error("name the threads, or say --all: one of the two")
    return _import(given.database, given.thread, [_class(name) for name in given.allow])


def _class(named: str) -> type:
    module, _, name = named.partition(":")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except (ImportError, ValueError) as error:
        raise SystemExit(f"--allow {named}: {error}.") from error
    if not isinstance(found, type):
        raise SystemExit(f"--allow {named}: there is no such class. Write module:Class.")
    return found


def _import(database: str, threads: Sequence[str], allow: Sequence[type]) -> int:
    try:
        import psycopg  # noqa: PLC0415 - with the next
        from langgraph.checkpoint.postgres import PostgresSaver  # noqa: PLC0415 - a package of its own
    except ImportError:
        sys.stderr.write("Install langgraph-checkpoint-postgres first: it reads what PostgresSaver keeps.\n")
        return 1
    try:
        target = HoldpointSaver(allow=allow)
        with closing(target), PostgresSaver.from_conn_string(database) as source:
            source.serde = JsonPlusSerializer(allowed_msgpack_modules=tuple(allow) or None)
            refused = [thread for thread in threads or _all(source) if not _brought(source, target, thread)]
    except (HoldpointError, psycopg.Error) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 1 if refused else 0


def _brought(source: BaseCheckpointSaver[Any], target: HoldpointSaver, thread: str) -> bool:
    """Bring one thread; say so, or why not: the others do not depend on it."""
    try:
        count = import_thread(source, target, thread)
    except (BadToken, Unreachable):
        raise
    except HoldpointError as error:
        sys.stderr.write(f"{thread}: {error}\n")
        return False
    sys.stdout.write(f"{thread}: {count} checkpoints\n")
    return True


def _all(source: object) -> list[str]:
    rows = source.conn.execute("SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id")  # type: ignore[attr-defined]
    return [row["thread_id"] for row in rows.fetchall()]


if __name__ == "__main__":
    sys.exit(main())
