"""Brings threads from another LangGraph checkpointer: checkpoints, branches and pending writes, under the same ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple, PendingWrite

from .errors import ThreadTaken
from .saver import HoldpointSaver


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
