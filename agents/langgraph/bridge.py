"""The checkpointer of one superstep: it serves the step's input, and collects what LangGraph saves.

Everything is kept as JSON, as it goes into the run's state: so nothing that a node changes in place changes what was
saved. The root graph begins with the one checkpoint that the state holds, and a subgraph under its namespace with all
of its own, since its channels may store only what was added.

What has finished is handed to `keep` at once: the writes of a task, a subgraph's checkpoint, the result of a call. A
worker that takes the step over begins with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from holdpoint.langgraph.checkpointer import Checkpointer, config_of, number_writes, place_of, to_field
from holdpoint.langgraph.values import Allowed, decode_value, encode_value
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)

INTERRUPT, ERROR = "__interrupt__", "__error__"
RESUMES, CALLERS = "__pregel_resuming", "checkpoint_map"  # in a subgraph's config: what LangGraph tells it
HEAD = ("v", "id", "ts", "channel_versions", "versions_seen", "updated_channels")


class Bridge(Checkpointer):
    """A checkpointer in memory. `threads`: namespace -> checkpoint id -> {head, metadata, parent, values, writes}.

    `writes` are lists of [task id, index, channel, value, task path]. `calls`: results of calls made once, by key.
    """

    def __init__(self, thread: str, *, allow: Allowed, keep: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self.thread = thread
        self.allow = allow
        self.keep = keep
        self.threads: dict[str, dict[str, dict[str, Any]]] = {}
        self.calls: dict[str, Any] = {}
        self.began = ""  # the checkpoint from which the superstep began; "" where the run begins
        self.given: dict[tuple[str, str], list[Any]] = {}  # the writes of its checkpoints then
        self.lock = threading.RLock()

    def begin(self, root: Mapping[str, Any], under: Mapping[str, Any], calls: Mapping[str, Any]) -> None:
        """Load the root's checkpoint, its subgraphs', and the results of calls."""
        self.began = root["head"]["id"]
        self.threads = {"": {self.began: dict(root)}}
        self.threads |= {name: dict(checkpoints) for name, checkpoints in under.items()}
        self.calls = dict(calls)
        self.given = {
            (name, id): list(checkpoint["writes"])
            for name, all in self.threads.items()
            for id, checkpoint in all.items()
        }

    def take_up(self, progress: Mapping[str, Any] | None) -> None:
        """Add what an earlier attempt kept of the same superstep."""
        if progress and progress.get("began") == self.began:
            self.threads[""][self.began]["writes"] = list(progress["writes"])
            self.threads |= {name: dict(checkpoints) for name, checkpoints in progress["under"].items()}
            self.calls = dict(progress["calls"])

    def progress(self) -> dict[str, Any]:
        """Return what has finished, for `take_up`. A task that failed or asks runs again, as it stood before.

        It gets the answers again too: with those that it has used, one would be taken for its next question.
        """
        under = {
            name: {id: {**checkpoint, "writes": self._finished(name, id)} for id, checkpoint in all.items()}
            for name, all in self.under().items()
        }
        writes = self._finished("", self.began)
        return {"began": self.began, "writes": writes, "under": under, "calls": dict(self.calls)}

    def _finished(self, where: str, id: str) -> list[list[Any]]:
        held = self.threads[where][id]["writes"]
        failed = {write[0] for write in held if write[2] == ERROR}
        done = {write[0] for write in held if write[1] >= 0} - failed
        before = [write for write in self.given.get((where, id), ()) if write[0] not in done and write[2] != ERROR]
        return before + [write for write in held if write[0] in done]

    def under(self) -> dict[str, Any]:
        """Return the subgraphs' checkpoints by namespace."""
        return {name: dict(checkpoints) for name, checkpoints in self.threads.items() if name}

    def newest(self, where: str = "") -> dict[str, Any] | None:
        """Return the newest checkpoint of the root graph or a namespace; None before there is one."""
        checkpoints = self.threads.get(where)
        return checkpoints[max(checkpoints)] if checkpoints else None

    def asking(self) -> dict[str, tuple[str, str]]:
        """Return the namespace and the task in which each pending interrupt was raised: the innermost of its own."""
        found: dict[str, tuple[str, str]] = {}
        for where in sorted(self.threads, key=len):
            for task, _, channel, value, _ in (self.newest(where) or {})["writes"]:
                if channel == INTERRUPT:
                    found |= {interrupt.id: (where, task) for interrupt in decode_value(value, allow=self.allow)}
        return found

    def remember(self, key: str, value: Any) -> None:
        """Keep the result of a call."""
        with self.lock:
            self.calls[key] = encode_value(value, allow=self.allow)
            self._keep()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, the newest unless the config names one.

        A subgraph with a memory of its own that has not begun in its callers' checkpoints does not resume: LangGraph
        tells all to where the graph is called without input, as each superstep is, and it would not run.
        """
        _, where, asked = place_of(config)
        with self.lock:
            found = self.threads.get(where, {}).get(asked) if asked else self.newest(where)
            if found and where and not asked and callers_of(found) != config["configurable"].get(CALLERS):
                config["configurable"].pop(RESUMES, None)  # as LangGraph itself does on a time travel
            return self._tuple(where, found) if found else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints of a namespace, or of all, the newest first."""
        wanted = config["configurable"].get("checkpoint_ns") if config else None
        until = get_checkpoint_id(before) if before else None
        with self.lock:
            found = [
                self._tuple(where, saved)
                for where, all in self.threads.items()
                if wanted is None or where == wanted
                for id, saved in sorted(all.items(), reverse=True)
                if until is None or id < until
            ]
        kept = [
            checkpoint
            for checkpoint in found
            if all(checkpoint.metadata.get(k) == v for k, v in (filter or {}).items())
        ]
        yield from kept[:limit]

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; values whose version is not new are its parent's."""
        _, where, parent = place_of(config)
        with self.lock:
            before = self.threads.get(where, {}).get(parent or "", {}).get("values", {})
            values = {
                name: before[name]
                if name in before and name not in new_versions
                else to_field(name, value, allow=self.allow)
                for name, value in checkpoint["channel_values"].items()
            }
            head = {name: checkpoint.get(name) for name in HEAD}
            encoded = encode_value(dict(get_checkpoint_metadata(config, metadata)), allow=self.allow)
            saved = self.threads.setdefault(where, {}).setdefault(checkpoint["id"], _stub(checkpoint["id"]))
            saved |= {"head": head, "metadata": encoded, "parent": parent, "values": values}
            if where:
                self._keep()
        return config_of(self.thread, where, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save a task's writes with their checkpoint; those of a special channel replace the ones before."""
        where, id = config["configurable"].get("checkpoint_ns", ""), config["configurable"]["checkpoint_id"]
        with self.lock:
            held = self.threads.setdefault(where, {}).setdefault(id, _stub(id))["writes"]
            known = {(write[0], write[1]): at for at, write in enumerate(held)}
            for index, channel, value in number_writes(writes, allow=self.allow):
                row = [task_id, index, channel, value, task_path]
                at = known.get((task_id, index))
                if at is None:
                    held.append(row)
                elif index < 0:
                    held[at] = row
            if any(channel not in (INTERRUPT, ERROR) for channel, _ in writes):
                self._keep()

    def _tuple(self, where: str, saved: Mapping[str, Any]) -> CheckpointTuple:
        values = {name: decode_value(value, allow=self.allow) for name, value in saved["values"].items()}
        head = {name: value for name, value in saved["head"].items() if name != "versions_seen"}
        seen = {node: dict(versions) for node, versions in saved["head"]["versions_seen"].items()}
        whole = {**head, "channel_versions": dict(head["channel_versions"]), "versions_seen": seen}
        checkpoint = cast(Checkpoint, {**whole, "channel_values": values})
        rows = sorted(saved["writes"], key=lambda row: writes_sort_key(row[4], row[0], row[1]))
        writes = [(task, channel, value) for task, _, channel, value, _ in rows]
        parent = saved["parent"] if saved["parent"] in self.threads.get(where, {}) else None
        metadata = decode_value(saved["metadata"], allow=self.allow)
        return self.make_tuple(self.thread, where, parent, checkpoint, metadata, writes)

    def _keep(self) -> None:
        if self.began and max(self.threads[""]) == self.began:  # else the superstep is over, and its step returns
            self.keep(self.progress())


def callers_of(saved: Mapping[str, Any]) -> Any:
    """Return the checkpoints of the graphs above, by namespace, in which a subgraph saved one."""
    return saved["metadata"].get("parents", {})


def _stub(id: str) -> dict[str, Any]:
    """Return the place of a checkpoint whose writes come before it."""
    head = {"v": 4, "id": id, "ts": "", "channel_versions": {}, "versions_seen": {}, "updated_channels": None}
    return {"head": head, "metadata": {}, "parent": None, "values": {}, "writes": []}
