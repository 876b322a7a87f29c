"""Brings threads from another LangGraph checkpointer: checkpoints, branches and pending writes, under the same ids.

python -m holdpoint.langgraph import DATABASE_URL THREAD… brings those that PostgresSaver keeps. It needs
langgraph-checkpoint-postgres. Address and token of the server are HOLDPOINT_URL and HOLDPOINT_TOKEN.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple, PendingWrite
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ..errors import BadToken, HoldpointError, Unreachable
from .checkpointer import HoldpointSaver
from .saver_errors import ThreadTaken


def import_thread(source: BaseCheckpointSaver[Any], target: HoldpointSaver, thread_id: str) -> int:
    """Copy a thread with all its namespaces from another checkpointer; return the number of checkpoints.

    The thread must be new here. Versions become whole numbers, which a graph goes on from as from the others. If it is
    cut short, delete the thread and import it again. Raises ThreadTaken, Unsaveable.
    """
    whole: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    if next(target.list(whole, limit=1), None) is not None:
        raise ThreadTaken(f"The thread {thread_id!r} has checkpoints here. Delete it first: saver.delete_thread(…).")
    # The oldest first, so that each parent is there; a subgraph's after the checkpoint that called it.
    found = sorted(source.list(whole), key=lambda original: original.checkpoint["id"])
    there: set[tuple[str, str]] = set()
    for original in found:
        _put(target, original, there)
    return len(found)


def _put(target: HoldpointSaver, original: CheckpointTuple, imported: set[tuple[str, str]]) -> None:
    config, namespace = original.config, original.config["configurable"].get("checkpoint_ns", "")
    parent = (original.parent_config or {}).get("configurable", {}).get("checkpoint_id")
    place = {"thread_id": config["configurable"]["thread_id"], "checkpoint_ns": namespace}
    # A parent that the other store pruned is none.
    after = {**place, "checkpoint_id": parent} if (namespace, parent) in imported else place
    target.branch_from({"configurable": after})
    checkpoint = _renumbered(original.checkpoint)
    saved = target.put({"configurable": after}, checkpoint, original.metadata, checkpoint["channel_versions"])
    imported.add((namespace, checkpoint["id"]))
    # The source has them in LangGraph's order, and not the paths that they are ordered by.
    for number, (task, writes) in enumerate(_by_task(original.pending_writes or ()).items()):
        target.put_writes(saved, writes, task, f"imported:{number:06}")


def _by_task(writes: Sequence[PendingWrite]) -> Mapping[str, list[tuple[str, Any]]]:
    found: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in writes:
        found.setdefault(task, []).append((channel, value))
    return found


def _renumbered(checkpoint: Checkpoint) -> Checkpoint:
    def numbers(versions: Mapping[str, Any]) -> dict[str, Any]:
        return {name: int(str(version).split(".")[0]) for name, version in versions.items()}

    seen = {node: numbers(versions) for node, versions in checkpoint["versions_seen"].items()}
    made = {**checkpoint, "channel_versions": numbers(checkpoint["channel_versions"]), "versions_seen": seen}
    return cast(Checkpoint, made)


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
