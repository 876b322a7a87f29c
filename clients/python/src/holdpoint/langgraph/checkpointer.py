"""The checkpointer: LangGraph's interface, over a backend that keeps threads as runs.

A checkpoint becomes the fields of a run's state: each channel a field under its own name, so that the run's page shows,
compares and edits it. What LangGraph needs beside the values (versions, metadata) is the one field `langgraph`: the
checkpoint's digest covers it too.
A channel that would take that name gets an underscore more.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import INTERRUPT

from .backend import Backend, Change, HttpBackend, New, Stored
from .memory import KnownState, Memory, known_state
from .saver_errors import Unreadable, Unsaveable
from .values import JSON, Allowed, decode_value, encode_value

POSITION = "langgraph"
P = ParamSpec("P")
T = TypeVar("T")


def _in_a_thread(twin: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return the awaited method that calls its twin in a thread.

    It has its twin's signature: LangGraph leaves out what a checkpointer does not name, such as a task's place.
    """

    @wraps(twin)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(getattr(self, twin.__name__), *args, **kwargs)

    return call


class Checkpointer(BaseCheckpointSaver[int]):
    """A checkpointer whose methods are written once, without `await`: an event loop goes on while they work."""

    allow: Allowed = ()  # classes that the graph's state may hold beside LangGraph's own

    aget_tuple = _in_a_thread(BaseCheckpointSaver.get_tuple)
    aput = _in_a_thread(BaseCheckpointSaver.put)
    aput_writes = _in_a_thread(BaseCheckpointSaver.put_writes)
    aget_delta_channel_history = _in_a_thread(BaseCheckpointSaver.get_delta_channel_history)
    adelete_thread = _in_a_thread(BaseCheckpointSaver.delete_thread)
    adelete_for_runs = _in_a_thread(BaseCheckpointSaver.delete_for_runs)
    acopy_thread = _in_a_thread(BaseCheckpointSaver.copy_thread)
    aprune = _in_a_thread(BaseCheckpointSaver.prune)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (checkpoint := await asyncio.to_thread(next, found, None)) is not None:
            yield checkpoint

    def make_tuple(
        self, thread: str, namespace: str, parent: str | None, checkpoint: Checkpoint, metadata: CheckpointMetadata,
        writes: Iterable[tuple[str, str, JSON]],
    ) -> CheckpointTuple:  # fmt: skip
        """Return a checkpoint as LangGraph reads it. Raises Unreadable."""
        config = config_of(thread, namespace, checkpoint["id"])
        parent_config = config_of(thread, namespace, parent) if parent else None
        return CheckpointTuple(config, checkpoint, metadata, parent_config, decode_writes(writes, allow=self.allow))


def place_of(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Return the thread, the namespace and the checkpoint's id that a configuration names, if it names one."""
    try:
        thread = str(config["configurable"]["thread_id"])
    except KeyError:
        raise ValueError('A thread needs a name: pass config={"configurable": {"thread_id": "…"}}.') from None
    return thread, config["configurable"].get("checkpoint_ns", ""), get_checkpoint_id(config)


def config_of(thread: str, namespace: str, id: str) -> RunnableConfig:
    """Return the configuration that names a checkpoint."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": id}}


def number_writes(writes: Sequence[tuple[str, Any]], *, allow: Allowed) -> list[tuple[int, str, JSON]]:
    """Return a task's writes as JSON, each as (LangGraph's number, channel, value). Raises Unsaveable."""
    return [
        (WRITES_IDX_MAP.get(channel, number), channel, to_field(channel, value, allow=allow))
        for number, (channel, value) in enumerate(writes)
    ]


def decode_writes(writes: Iterable[tuple[str, str, JSON]], *, allow: Allowed) -> list[PendingWrite]:
    """Return pending writes, given as (task, channel, value). Raises Unreadable."""
    return [(task, channel, decode_value(value, allow=allow)) for task, channel, value in writes]


def from_fields(
    fields: Mapping[str, JSON], checkpoint_id: str, *, allow: Allowed = ()
) -> tuple[Checkpoint, CheckpointMetadata]:
    """Return the checkpoint and its metadata. Raises Unreadable."""
    position = fields.get(POSITION)
    if not isinstance(position, dict) or "metadata" not in position or "channel_versions" not in position:
        raise Unreadable(
            f"The state of checkpoint {checkpoint_id} has no usable field `{POSITION}`, so it is no LangGraph "
            "checkpoint. Rewind the run to one that has it."
        )
    values = {channel_of(name): decode_value(shown, allow=allow) for name, shown in fields.items() if name != POSITION}
    rest = decode_value(position, allow=allow)
    metadata = rest.pop("metadata")
    return cast(Checkpoint, {**rest, "id": checkpoint_id, "channel_values": values}), metadata


def to_field(channel: str, value: Any, *, allow: Allowed = ()) -> JSON:
    """Return the field of one channel's value. Raises Unsaveable with the channel's name."""
    try:
        return encode_value(value, allow=allow)
    except Unsaveable as error:
        raise Unsaveable(f"The channel {channel!r}: {error}") from error


def to_position(checkpoint: Checkpoint, metadata: CheckpointMetadata, *, allow: Allowed = ()) -> JSON:
    """Return the field `langgraph`: everything of a checkpoint but its id and its values."""
    rest: dict[str, Any] = {k: v for k, v in checkpoint.items() if k not in ("id", "channel_values")}
    return encode_value({**rest, "metadata": dict(metadata)}, allow=allow)


def field_of(channel: str) -> str:
    """Return the field's name of a channel."""
    return channel + "_" if channel.rstrip("_") == POSITION else channel


def channel_of(field: str) -> str:
    """Return the channel's name of a field other than `langgraph`."""
    return field[:-1] if field.rstrip("_") == POSITION else field


def next_version(current: Any) -> Any:
    """Return a channel's version after `current`, in its form: LangGraph compares it with those of other savers.

    Texts are compared as such, so the number keeps its width. Raises Unreadable where none of that form comes after it.
    """
    number = _number(current)
    if not isinstance(current, str):
        return number + 1
    digits, dot, rest = current.partition(".")
    if set(digits) == {"9"}:
        raise _no_version(current)
    return f"{number + 1:0{len(digits)}}{dot}{rest}"


def raise_versions(versions: Mapping[str, Any], channels: Iterable[str]) -> dict[str, Any]:
    """Return the versions with these channels' raised above all: their values were changed. Raises Unreadable."""
    newest = max(versions.values(), key=_number, default=None)
    return {**versions, **{channel: next_version(newest) for channel in channels}}


def _number(version: Any) -> int:
    if not isinstance(version, str):
        return 0 if version is None else int(version)
    digits = version.partition(".")[0]
    if not (digits.isascii() and digits.isdigit()):
        raise _no_version(version)
    return int(digits)


def _no_version(version: str) -> Unreadable:
    return Unreadable(
        f"{version!r} is no version that a checkpointer of LangGraph's gives a channel: a whole number, or a text that "
        "begins with one, filled with zeros. Give the checkpoint's channels such versions."
    )


RUNTIME = "__pregel_runtime"  # where a configuration has LangGraph's Runtime
STRATEGIES = ("keep_latest", "delete")


class HoldpointSaver(Checkpointer):
    """Keeps a graph's threads in Holdpoint, each namespace of a thread as a run.

    Over the HTTP API by default: address and token from HOLDPOINT_URL and HOLDPOINT_TOKEN unless given. In the server's
    own process, which is much faster, with `HoldpointSaver(agents.threads.local.InProcess(…))`. `allow`: classes of the
    graph's state beside LangGraph's own, which may be restored. May be used by several threads and event loops.
    """

    def __init__(
        self, backend: Backend | None = None, *, url: str = "", token: str = "", allow: Collection[type] = ()
    ) -> None:
        self.allow: frozenset[tuple[str, ...]] = frozenset((kind.__module__, kind.__name__) for kind in allow)
        super().__init__(serde=JsonPlusSerializer(allowed_msgpack_modules=tuple(self.allow) or None))
        self._backend = backend or HttpBackend(url, token)
        self._memory = Memory()

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> HoldpointSaver:
        """Return this saver, with the classes of the graph's schema allowed too."""
        clone = copy.copy(self)
        clone.allow = self.allow | frozenset(extra_allowlist)
        return clone

    def close(self) -> None:
        """Close the backend's connections."""
        self._backend.close()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the thread's newest checkpoint, or the one that the configuration names.

        Raises Tampered and Unreadable.
        """
        thread, namespace, id = place_of(config)
        known = self._memory.known_thread(thread, namespace)
        if not namespace:
            known.begin(_invocation(config))
        if id is None:
            with known.lock:  # or what was read before a put would be noted after it
                stored, seen = self._backend.get(thread, namespace, None)
                known.is_newest(stored.id if stored else None, seen)
        else:
            stored, _ = self._backend.get(thread, namespace, id)
            known.asked_for(id)
        found = self._tuple(stored) if stored else None
        if found:
            checkpoint = found.checkpoint
            known.know(checkpoint["id"], known_state(checkpoint["channel_versions"], checkpoint["channel_values"]))
        return found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the newest first. Raises as `get_tuple` does."""
        only = {key: encode_value(value, allow=self.allow) for key, value in (filter or {}).items()}
        if config is not None and get_checkpoint_id(config):
            stored, _ = self._backend.get(*place_of(config))
            found = self._tuple(stored) if stored else None
            if stored and found and limit != 0 and only.items() <= stored.fields[POSITION]["metadata"].items():
                yield found
            return
        thread = place_of(config)[0] if config else None
        namespace = config["configurable"].get("checkpoint_ns") if config else None
        below = get_checkpoint_id(before) if before else None
        empty = True
        for stored in self._backend.listed(thread, namespace, before=below, limit=limit, only=only or None):
            empty = False
            self._memory.known_thread(stored.thread, stored.namespace).asked_for(stored.id)
            yield self._tuple(stored)
        if below and empty and thread is not None and namespace is not None:
            # A subgraph that is sent back to before it ran.
            self._memory.known_thread(thread, namespace).asked_for(None)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint after the one that the configuration names.

        Raises ThreadMoved if somebody else has written the thread since it was read, ThreadEnded, Unsaveable.
        """
        thread, namespace, parent = place_of(config)
        try:
            self._put(thread, namespace, parent, checkpoint, get_serializable_checkpoint_metadata(config, metadata))
        except Exception as error:
            self._memory.known_thread(thread, "").refuse(_root(config, checkpoint["id"]), _invocation(config), error)
            raise
        return config_of(thread, namespace, checkpoint["id"])

    def _put(
        self, thread: str, namespace: str, parent: str | None, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> None:
        known = self._memory.known_thread(thread, namespace)
        with known.lock:
            seen = known.goes_on(thread, parent, forks=metadata.get("source") == "fork")
            base = known.states.get(parent) if parent else None
            changes, state = _changes(base, checkpoint, self.allow)
            changes[POSITION] = ("set", to_position(checkpoint, metadata, allow=self.allow))
            run_id = metadata.get("run_id")
            new = New(checkpoint["id"], parent, changes, base is None, run_id if isinstance(run_id, str) else "")
            seen = self._backend.put(thread, namespace, new, seen)
            for again in known.put_through(checkpoint["id"], seen, state):
                again()

    def branch_from(self, config: RunnableConfig) -> None:
        """Let a put go on from the checkpoint that the configuration names, though the thread has moved on from it.

        Without one, from the beginning.
        """
        thread, namespace, id = place_of(config)
        self._memory.known_thread(thread, namespace).asked_for(id)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote at the checkpoint that the configuration names. Raises Unsaveable."""
        thread, namespace, id = place_of(config)
        numbered = number_writes(writes, allow=self.allow)
        if id is None:
            raise ValueError("put_writes needs the checkpoint_id of the checkpoint that the writes follow.")
        if not numbered:
            return
        send = partial(self._backend.put_writes, thread, namespace, id, numbered, task_id, task_path)
        if any(channel == INTERRUPT for channel, _ in writes):
            # LangGraph raises nothing else where a subgraph interrupts: an answer would go to an older state of it.
            root = _root(config, id)
            if (refused := self._memory.known_thread(thread, "").refusal(root, _invocation(config))) is not None:
                raise refused
            self._memory.known_thread(thread, namespace).interrupted(id, send)
        send()

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what DeltaChannels are rebuilt from, in one query. Raises as `get_tuple` does."""
        thread, namespace, id = place_of(config)
        if channels and id is None:
            stored, _ = self._backend.get(thread, namespace, None)
            id = stored.id if stored else None
        if not channels or id is None:
            return {channel: {"writes": []} for channel in channels}
        found = self._backend.history(thread, namespace, id, {channel: field_of(channel) for channel in channels})
        made: dict[str, DeltaChannelHistory] = {}
        for channel, history in found.items():
            made[channel] = {"writes": decode_writes(history.writes, allow=self.allow)}
            if history.stored:
                made[channel]["seed"] = decode_value(history.value, allow=self.allow)
        return made

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread's checkpoints in all namespaces. Raises ThreadHeld."""
        self._backend.delete(thread_id)
        self._memory.forget(thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints that these invocations saved, in all threads. Raises ThreadHeld."""
        if run_ids:
            self._backend.delete_for_runs(_texts("run_ids", run_ids))
            self._memory.forget_all()

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all its checkpoints and writes to a new one. Raises ThreadTaken."""
        self._backend.copy(source_thread_id, target_thread_id)
        self._memory.forget(target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the newest checkpoint of each namespace and what it is rebuilt from, or nothing. Raises ThreadHeld."""
        if strategy not in STRATEGIES:
            raise ValueError(f"Unknown prune strategy {strategy!r}. Use one of {', '.join(STRATEGIES)}.")
        for thread in _texts("thread_ids", thread_ids):
            self._backend.prune(thread) if strategy == "keep_latest" else self._backend.delete(thread)
            self._memory.forget(thread)

    def _tuple(self, stored: Stored) -> CheckpointTuple:
        checkpoint, metadata = from_fields(stored.fields, stored.id, allow=self.allow)
        if stored.edited:
            edited = [channel_of(field) for field in stored.edited]
            versions = checkpoint["channel_versions"]
            checkpoint["channel_versions"] = raise_versions(versions, [name for name in edited if name in versions])
        return self.make_tuple(stored.thread, stored.namespace, stored.parent, checkpoint, metadata, stored.writes)

    def get_next_version(self, current: Any, channel: None = None) -> Any:
        """Return the version after `current`, in its form."""
        return next_version(current)


def _changes(base: KnownState | None, checkpoint: Checkpoint, allow: Allowed) -> tuple[dict[str, Change], KnownState]:
    """Return how a checkpoint differs from what was saved before it, and what is then known of it.

    Without a base it is the whole state. A channel whose version is the same has not changed.
    """
    values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
    same = {
        name for name in base.channels & values.keys() if name in versions and versions[name] == base.versions.get(name)
    } if base else set()  # fmt: skip
    now = known_state(versions, {name: channel_value for name, channel_value in values.items() if name not in same})
    changes: dict[str, Change] = {}
    for name, value in values.items():
        if name in same:
            continue
        before, after = base.lists.get(name) if base else None, now.lists.get(name)
        if before is not None and after is not None and before.grown(after):
            changes[field_of(name)] = ("append", [to_field(name, item, allow=allow) for item in value[before.items :]])
        else:
            changes[field_of(name)] = ("set", to_field(name, value, allow=allow))
    if base is None:
        return changes, now
    for name in base.channels - values.keys():
        changes[field_of(name)] = ("drop", None)
    kept = {name: saved_list for name, saved_list in base.lists.items() if name in same}
    return changes, KnownState(now.versions, frozenset(values), {**kept, **now.lists})


def _root(config: RunnableConfig, id: str) -> str:
    """Return the graph's own checkpoint: `id`, or in a subgraph the one from which it was called."""
    inside = config["configurable"].get("checkpoint_ns")
    return str(config["configurable"].get("checkpoint_map", {}).get("", "")) if inside else id


def _invocation(config: RunnableConfig) -> object:
    """Return what LangGraph makes anew for each invocation and shares with its subgraphs; None outside of one."""
    return getattr(config["configurable"].get(RUNTIME), "control", None)


def _texts(what: str, given: Sequence[str]) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"{what} is a list of ids, not one text.")
    return [str(item) for item in given]
