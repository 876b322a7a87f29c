"""The part of a checkpointer that is the same wherever it keeps checkpoints: awaited methods, configurations, JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

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

from .state import to_field
from .values import JSON, Allowed, decode_value

P = ParamSpec("P")
T = TypeVar("T")


def _in_a_thread(twin: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return the awaited method that calls its twin in a thread."""

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
