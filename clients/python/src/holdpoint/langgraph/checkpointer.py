"""A LangGraph checkpoint as the fields of a run's state and back, and what checkpointers have alike.

Each channel is a field under its own name, so that the run's page shows, compares and edits it. What LangGraph
needs beside the values (versions, metadata) is the one field `langgraph`: the checkpoint's digest covers it too.
A channel that would take that name gets an underscore more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    PendingWrite,
    get_checkpoint_id,
)

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
