"""Bodies and answers of the addresses of threads."""

from __future__ import annotations

from typing import Any

from ninja import Schema
from pydantic import Field

from agents.api.programs.starting import NAME
from agents.api.runs.moves import Order

AGENT = Field(
    "",
    description="The agent's name; empty with a token for one agent.",
    pattern=f"{NAME}|^$",
    examples=["assistant"],
)
TEAM = Field("", description="The team of the threads; empty if there is only one.", max_length=150, examples=[""])
THREAD = Field(description="The thread's id.", min_length=1, max_length=200, examples=["chat-1207"])
NAMESPACE = Field("", description="The namespace: empty for the graph itself.", max_length=2000, examples=[""])
ID = Field(
    description="The checkpoint's id, a UUID.", max_length=100, examples=["1f0b6c1e-0f5e-6b7a-8001-0a1b2c3d4e5f"]
)
PARENT = "1f0b6c1e-0f4d-6a12-8000-0a1b2c3d4e5f"
POSITION = {
    "v": 4, "ts": "2026-11-02T09:30:00+00:00", "channel_versions": {"answer": 2}, "versions_seen": {},
    "metadata": {"source": "loop", "step": 1, "parents": {}},
}  # fmt: skip
STATE = {"answer": "Paid.", "langgraph": POSITION}
Known = tuple[int, str | None]
SEEN = "What was read or answered last of this thread: the claim's token, and the head's id."


class ThreadOrder(Order):
    """An order to the threads of an agent."""

    agent: str = AGENT
    team: str = TEAM


class PutCheckpoint(ThreadOrder):
    """Save a checkpoint of a graph after its parent. Members that name fields change the parent's state."""

    thread: str = THREAD
    namespace: str = NAMESPACE
    id: str = ID
    parent: str | None = Field(
        None, description="The checkpoint that it follows; null: it begins the thread.", max_length=100,
        examples=[PARENT],
    )  # fmt: skip
    set: dict[str, Any] = Field({}, description="Fields with their new values.", examples=[STATE])
    append: dict[str, list[Any]] = Field(
        {}, description="Lists with the items at their end.", examples=[{"messages": ["Pay it."]}]
    )
    drop: list[str] = Field([], description="Fields that the state has no more.", max_length=1000, examples=[[]])
    whole: bool = Field(False, description="Whether `set` is the whole state.", examples=[False])
    invocation: str = Field(
        "", description="LangGraph's `run_id` of the invocation, if it has one.", max_length=200, examples=[""]
    )
    seen: Known | None = Field(
        None, description=f"{SEEN} If it is something else by now, 409 `thread_moved`; null: whatever is there.",
        examples=[[3, PARENT]],
    )  # fmt: skip


class Saved(Schema):
    """A checkpoint was saved."""

    seen: Known = Field(description="What to send with the next one.", examples=[[3, PARENT]])


class PendingWrite(Order):
    """A write of a task to a channel."""

    number: int = Field(
        description="Its number among the task's writes; below 0 for a special channel.", ge=-100, le=10_000,
        examples=[0],
    )  # fmt: skip
    channel: str = Field(description="The channel.", max_length=1000, examples=["answer"])
    value: Any = Field(None, description="The value.", examples=["Paid."])


class PutWrites(ThreadOrder):
    """Keep what a task wrote before the next checkpoint is saved."""

    thread: str = THREAD
    namespace: str = NAMESPACE
    id: str = ID
    task: str = Field(description="The task's id.", min_length=1, max_length=200, examples=["6c1b8b7e"])
    path: str = Field("", description="The task's path in its graph.", max_length=4000, examples=["~__pregel_pull"])
    writes: list[PendingWrite] = Field(description="The writes.", min_length=1, max_length=10_000)


class Deletion(ThreadOrder):
    """Remove a thread's checkpoints, or those that invocations saved."""

    thread: str = Field("", description="The thread; empty: `invocations`.", max_length=200, examples=["chat-1207"])
    invocations: list[str] = Field(
        [], description="LangGraph's `run_id`s; empty: `thread`.", max_length=1000, examples=[[]]
    )


class ThreadCopy(ThreadOrder):
    """Copy a thread with its checkpoints and writes."""

    thread: str = THREAD
    to: str = Field(description="The thread to copy to, without checkpoints.", min_length=1, max_length=200,
                    examples=["chat-1208"])  # fmt: skip


class ThreadPrune(ThreadOrder):
    """Keep the newest checkpoint of each namespace, and what it is rebuilt from."""

    thread: str = THREAD


class ThreadDone(Schema):
    """It was done."""

    done: bool = Field(True, description="Always true.", examples=[True])


class ReadWrite(Schema):
    """A pending write."""

    task: str = Field(description="The task's id.", examples=["6c1b8b7e"])
    channel: str = Field(description="The channel.", examples=["answer"])
    value: Any = Field(description="The value.", examples=["Paid."])


class ReadCheckpoint(Schema):
    """A checkpoint of a graph."""

    thread: str = Field(description="The thread's id.", examples=["chat-1207"])
    namespace: str = Field(description="The namespace.", examples=[""])
    id: str = Field(description="The checkpoint's id.", examples=[PARENT])
    parent: str | None = Field(description="The id of its parent; null: it has none.", examples=[None])
    fields: dict[str, Any] = Field(
        description="The state: each channel under its name, and in `langgraph` the versions and the metadata.",
        examples=[STATE],
    )
    writes: list[ReadWrite] = Field(description="The writes pending at it, in LangGraph's order.")
    edited: list[str] = Field(
        description="The fields that a person has changed since the graph saved them.", examples=[[]]
    )


class ReadThread(Schema):
    """The checkpoint that was asked for; null where there is none."""

    found: ReadCheckpoint | None
    seen: Known = Field(description="What to send with a put that follows.", examples=[[3, PARENT]])


class CheckpointList(Schema):
    """Checkpoints, the newest first."""

    items: list[ReadCheckpoint]
    next: str | None = Field(description="The `cursor` of the next page; null at the end.", examples=[None])


class ReadHistory(Schema):
    """The writes and the value from which a DeltaChannel is rebuilt."""

    writes: list[ReadWrite] = Field(description="The writes to the channel, oldest first.")
    stored: bool = Field(description="Whether a stored value comes before them.", examples=[True])
    value: Any = Field(description="That value.", examples=[[]])


class ReadHistories(Schema):
    """The histories by channel."""

    channels: dict[str, ReadHistory]
